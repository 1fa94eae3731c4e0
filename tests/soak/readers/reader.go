// The soak's reader in Go, which does what reader.c does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"pullet"
)

var (
	keys     = []string{"n", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "pad", "end"}
	versions int
)

type reader struct {
	name       string
	config     *pullet.Config
	generation uint64
	n          int64
	ended      bool
}

func (r *reader) check() {
	sum := uint32(2166136261)
	for _, key := range keys {
		for _, b := range []byte(r.config.String(key, "") + "\n") {
			sum = (sum ^ uint32(b)) * 16777619
		}
	}
	generation, n := r.config.Generation(), r.config.Int("n", -1)
	if said := r.config.String("sum", "none"); said != strconv.FormatUint(uint64(sum), 10) {
		fmt.Printf("wrong: %s, version %d: the sum is %s, of what is there %d\n", r.name, n, said, sum)
	}
	if generation < r.generation || n < r.n {
		fmt.Printf("wrong: %s went back from version %d of generation %d to %d of %d\n", r.name, r.n, r.generation, n, generation)
	}
	r.generation, r.n, r.ended = generation, n, r.config.String("end", "") == "yes"
	versions++
}

func (r *reader) wait() {
	before := r.config.Generation()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	err := r.config.Wait(ctx)
	cancel()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		fmt.Printf("wrong: %s: %v\n", r.name, err)
	} else if r.config.Generation() != before {
		r.check()
	}
}

func (r *reader) refresh() {
	moved, err := r.config.Refresh()
	if err != nil {
		fmt.Printf("wrong: %s: %v\n", r.name, err)
	} else if moved {
		r.check()
	}
}

func main() {
	var readers []*reader
	for _, name := range os.Args[1:] {
		config, err := pullet.Open(name, pullet.WaitFirst)
		if err != nil {
			fmt.Printf("wrong: %s: %v\n", name, err)
			os.Exit(1)
		}
		r := &reader{name: name, config: config}
		if config.Generation() != 0 {
			r.check()
		}
		readers = append(readers, r)
	}
	for turn, ended := 0, 0; ended < len(readers); turn++ {
		readers[turn%len(readers)].wait()
		ended = 0
		for _, r := range readers {
			r.refresh()
			if r.ended {
				ended++
			}
		}
	}
	fmt.Printf("Go: %d versions\n", versions)
}
