// history_checker says whether a history of concurrent operations (history.go) can be explained by
// an order of them that respects time: linearizability, found out by porcupine.
//
//	history_checker [-timeout 60s] [-figure FILE.html] keys|groups FILE
//
// "keys" looks at each key by itself, as a register: operations on several keys are taken apart.
// "groups" looks at each group of keys as one object: a write changes all of its keys at once, and a
// read is of one moment. Together with the order of time that is strict serializability, which is
// more than snapshot isolation.
//
// Exit codes: 0 it can be explained, 1 it cannot, 2 the file is no history, 3 the time did not
// suffice to tell. With 1, -figure gets a drawing of the group that cannot be explained.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	exitIllegal = 1
	exitUsage   = 2
	exitUnknown = 3
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "history_checker:", err)
	os.Exit(exitUsage)
}

// verdict is what was found out about one object.
type verdict struct {
	object string
	result porcupine.CheckResult
	took   time.Duration
}

// checkAll checks the objects, the largest first, two at a time: each keeps a good deal in memory.
func checkAll(objects map[string][]porcupine.Operation, timeout time.Duration) []verdict {
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if len(objects[names[i]]) != len(objects[names[j]]) {
			return len(objects[names[i]]) > len(objects[names[j]])
		}
		return names[i] < names[j]
	})
	verdicts := make([]verdict, len(names))
	next := make(chan int)
	var workers sync.WaitGroup
	for w := 0; w < 2; w++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range next {
				start := time.Now()
				result := porcupine.CheckOperationsTimeout(model, objects[names[i]], timeout)
				verdicts[i] = verdict{names[i], result, time.Since(start)}
			}
		}()
	}
	for i := range names {
		next <- i
	}
	close(next)
	workers.Wait()
	return verdicts
}

func draw(operations []porcupine.Operation, path string, timeout time.Duration) {
	_, info := porcupine.CheckOperationsVerbose(model, operations, timeout)
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		fmt.Fprintln(os.Stderr, "history_checker:", err)
		return
	}
	fmt.Println("drawn in", path)
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "for each key or group")
	figure := flag.String("figure", "", "where to draw what cannot be explained")
	flag.Parse()
	if flag.NArg() != 2 || (flag.Arg(0) != "keys" && flag.Arg(0) != "groups") {
		fail(fmt.Errorf("usage: history_checker [-timeout 60s] [-figure FILE.html] keys|groups FILE"))
	}
	history, err := readHistory(flag.Arg(1))
	if err != nil {
		fail(err)
	}
	if flag.Arg(0) == "keys" {
		history = history.byKey()
	}
	objects, err := history.objects()
	if err != nil {
		fail(err)
	}
	code, operations, longest := 0, 0, time.Duration(0)
	for _, v := range checkAll(objects, *timeout) {
		operations += len(objects[v.object])
		if v.took > longest {
			longest = v.took
		}
		switch {
		case v.result == porcupine.Illegal:
			fmt.Printf("%s: no order explains its %d operations\n", v.object, len(objects[v.object]))
			if code != exitIllegal && *figure != "" {
				draw(objects[v.object], *figure, *timeout)
			}
			code = exitIllegal
		case v.result == porcupine.Unknown:
			fmt.Printf("%s: %d operations are too many for %v\n", v.object, len(objects[v.object]),
				*timeout)
			if code == 0 {
				code = exitUnknown
			}
		}
	}
	fmt.Printf("%d operations on %d %s, at most %v for one\n", operations, len(objects), flag.Arg(0),
		longest.Round(time.Millisecond))
	os.Exit(code)
}
