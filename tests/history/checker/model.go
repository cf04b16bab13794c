package main

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// mostKeys is how many keys a group may have.
const mostKeys = 16

// state is what a group holds: for each key the number of its value, 0 for none.
type state [mostKeys]int32

// step is an operation as the model has it: keys are places in the state, values numbers.
type step struct {
	write  bool
	places []uint8
	values []int32
	text   string
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		s, now := input.(*step), before.(state)
		if !s.write {
			for i, place := range s.places {
				if now[place] != s.values[i] {
					return false, before
				}
			}
			return true, before
		}
		for i, place := range s.places {
			now[place] = s.values[i]
		}
		return true, now
	},
	Hash: func(of interface{}) uint64 {
		hash := uint64(14695981039346656037)
		for _, value := range of.(state) {
			hash = (hash ^ uint64(uint32(value))) * 1099511628211
		}
		return hash
	},
	DescribeOperation: func(input, _ interface{}) string { return input.(*step).text },
	DescribeState:     func(of interface{}) string { return fmt.Sprint(of) },
}

func (o *operation) String() string {
	parts := make([]string, len(o.Keys))
	for i, key := range o.Keys {
		value := "none"
		if o.Values[i] != nil {
			value = *o.Values[i]
		}
		parts[i] = key + "=" + value
	}
	return o.Op + " " + strings.Join(parts, " ")
}

// objects gives the operations of each object, as the model takes them.
func (h *history) objects() (map[string][]porcupine.Operation, error) {
	values := map[string]int32{}
	places := map[string]map[string]uint8{}
	result := map[string][]porcupine.Operation{}
	for _, o := range h.bound() {
		object := h.objectOf(o.Keys[0])
		if places[object] == nil {
			places[object] = map[string]uint8{}
		}
		s := &step{write: o.Op == "write", text: o.String()}
		for i, key := range o.Keys {
			place, ok := places[object][key]
			if !ok {
				if len(places[object]) == mostKeys {
					return nil, fmt.Errorf("%s: more than %d keys", object, mostKeys)
				}
				place = uint8(len(places[object]))
				places[object][key] = place
			}
			number := int32(0)
			if value := o.Values[i]; value != nil {
				if number, ok = values[*value]; !ok {
					number = int32(len(values) + 1)
					values[*value] = number
				}
			}
			s.places = append(s.places, place)
			s.values = append(s.values, number)
		}
		result[object] = append(result[object], porcupine.Operation{
			ClientId: o.Client, Input: s, Call: o.Call, Return: o.Return,
		})
	}
	return result, nil
}
