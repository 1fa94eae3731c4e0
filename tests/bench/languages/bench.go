// Go: package pullet, map, os.Getenv, encoding/json. Called by languages.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	"pullet"
)

const (
	hot    = 16
	rounds = 5
)

var sink int

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(file string) map[string]string {
	all := map[string]string{}
	b, err := os.ReadFile(file)
	must(err)
	must(json.Unmarshal(b, &all))
	return all
}

func processor() float64 {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func measure(keys []string, read func(key string) string) float64 {
	run := func(n int) float64 {
		begin := processor()
		for i := 0; i < n; i++ {
			sink += len(read(keys[i%hot]))
		}
		return processor() - begin
	}
	n := 2
	for run(n) < 50e6 {
		n *= 2
	}
	var ns [rounds]float64
	for i := range ns {
		ns[i] = run(n) / float64(n)
	}
	sort.Float64s(ns[:])
	return ns[rounds/2]
}

func main() {
	folder, keys := os.Args[1], os.Args[2:]
	file := filepath.Join(folder, "config.json")
	c, err := pullet.Open(filepath.Join(folder, "config.snap"))
	must(err)
	all := parse(file)
	named := make([]*pullet.Key, hot)
	for i, key := range keys {
		named[i] = c.Key(key)
	}
	at := 0
	fmt.Println(measure(keys, func(key string) string { return c.String(key, "") }),
		measure(keys, func(string) string {
			at++
			return named[at%hot].String("")
		}),
		measure(keys, func(string) string {
			if moved, _ := c.Refresh(); moved {
				return "moved"
			}
			return ""
		}),
		measure(keys, func(key string) string { return all[key] }),
		measure(keys, os.Getenv),
		measure(keys, func(key string) string { return parse(file)[key] }), "JSON, encoding/json")
}
