package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
)

// An operation is a line of the file:
//
//	{"client":0,"call":10,"return":20,"op":"write","keys":["g0/a","g0/b"],"values":["0.1",null]}
//
// Times are nanoseconds of one steady clock. A write of unknown outcome, which may take
// effect at any time after its call, returns at 0. "op" is "write" (all of it at once) or "read" (as
// of one moment). No value (null) is a key that is deleted, or not found. A key is a group, a slash
// and a name; an operation stays within a group. No value is written twice, so that what is read
// tells who wrote it. At first no key has a value.
type operation struct {
	Client int       `json:"client"`
	Call   int64     `json:"call"`
	Return int64     `json:"return"`
	Op     string    `json:"op"`
	Keys   []string  `json:"keys"`
	Values []*string `json:"values"`
}

// history is what lies in a file. Each operation belongs to one object, which is checked by itself:
// a group of keys, or after byKey a key.
type history struct {
	operations []operation
	objectOf   func(key string) string
}

func groupOf(key string) string {
	group, _, _ := strings.Cut(key, "/")
	return group
}

func (o *operation) check() error {
	switch {
	case o.Op != "write" && o.Op != "read":
		return fmt.Errorf("no such op: %q", o.Op)
	case len(o.Keys) == 0 || len(o.Keys) != len(o.Values):
		return fmt.Errorf("%d keys and %d values", len(o.Keys), len(o.Values))
	case o.Client < 0 || o.Call <= 0:
		return fmt.Errorf("no client, or no time of the call")
	case o.Return == 0 && o.Op == "read":
		return fmt.Errorf("a read that answered nothing")
	case o.Return != 0 && o.Return < o.Call:
		return fmt.Errorf("returned before its call")
	}
	seen := map[string]bool{}
	for _, key := range o.Keys {
		if !strings.Contains(key, "/") || groupOf(key) != groupOf(o.Keys[0]) {
			return fmt.Errorf("key %q is of no group, or of another", key)
		}
		if seen[key] {
			return fmt.Errorf("key %q is there twice", key)
		}
		seen[key] = true
	}
	return nil
}

func readHistory(path string) (*history, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := &history{objectOf: groupOf}
	written := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		var o operation
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			err = o.check()
		}
		for i := 0; err == nil && o.Op == "write" && i < len(o.Values); i++ {
			if value := o.Values[i]; value != nil {
				if written[*value] {
					err = fmt.Errorf("%q is written twice", *value)
				}
				written[*value] = true
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		h.operations = append(h.operations, o)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(h.operations) == 0 {
		return nil, fmt.Errorf("%s: there is nothing in it", path)
	}
	return h, nil
}

// byKey takes operations on several keys apart.
func (h *history) byKey() *history {
	taken := &history{objectOf: func(key string) string { return key }}
	for _, o := range h.operations {
		for i := range o.Keys {
			one := o
			one.Keys = o.Keys[i : i+1]
			one.Values = o.Values[i : i+1]
			taken.operations = append(taken.operations, one)
		}
	}
	return taken
}

// reads is when what was read: of each value the first return, of each key the last that found none.
type reads struct {
	firstOf     map[string]int64
	lastWithout map[string]int64
}

func (h *history) reads() reads {
	r := reads{map[string]int64{}, map[string]int64{}}
	for _, o := range h.operations {
		if o.Op != "read" {
			continue
		}
		for i, value := range o.Values {
			if value == nil {
				if o.Return > r.lastWithout[o.Keys[i]] {
					r.lastWithout[o.Keys[i]] = o.Return
				}
			} else if at, ok := r.firstOf[*value]; !ok || o.Return < at {
				r.firstOf[*value] = o.Return
			}
		}
	}
	return r
}

// endOf says until when a write of unknown outcome must have taken effect, and whether any
// read may have seen it.
func (r reads) endOf(o *operation) (end int64, seen bool) {
	end = math.MaxInt64
	for i, value := range o.Values {
		if value == nil {
			seen = seen || r.lastWithout[o.Keys[i]] >= o.Call
		} else if at, ok := r.firstOf[*value]; ok {
			seen = true
			if at < end {
				end = at
			}
		}
	}
	if end < o.Call {
		end = o.Call
	}
	return end, seen
}

// bound gives an end to the writes of unknown outcome, and answers the operations that
// matter. Left open they would be concurrent with all that follows, and each would double the work.
// One whose value was read took effect before that read returned. One that no read saw can be
// explained in each history that can be without it (as the last of all), and left out of each that
// can be with it (nothing stands between it and what overwrote it that would have seen it).
func (h *history) bound() []operation {
	r := h.reads()
	kept := make([]operation, 0, len(h.operations))
	for _, o := range h.operations {
		if o.Return == 0 {
			end, seen := r.endOf(&o)
			if !seen {
				continue
			}
			o.Return = end
		}
		kept = append(kept, o)
	}
	return kept
}
