package pullet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// TestFakeAsAgent: the document of a golden image is the same to a reader.
func TestFakeAsAgent(t *testing.T) {
	cases := os.Getenv("PULLET_CASES")
	for _, name := range []string{golden + "/empty", golden + "/one", golden + "/collide", golden + "/values",
		cases + "/types-1", cases + "/nesting-1", cases + "/unicode-1", cases + "/overflow-1"} {
		c, err := Open(name + ".snap")
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := c.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		f := newFake(t, doc)
		if f.Count() < c.Count() { // the image has no records of some maps
			t.Errorf("%s: %d keys of %d", name, f.Count(), c.Count())
		}
		c.Each("", func(key string, v Value) bool {
			got, ok := f.Get(key)
			got.Text = v.Text // 0x1F is 31
			if !ok || got != v && !(math.IsNaN(got.Float) && math.IsNaN(v.Float)) {
				t.Errorf("%s: %q: %+v, want %+v", name, key, got, v)
			}
			return true
		})
		_ = c.Close()
	}
}

func TestFake(t *testing.T) {
	f := newFake(t, map[string]any{"timeout": 1500 * time.Millisecond, "db": map[string]any{"host": "a", "port": uint64(1)},
		"a.b": 1, "big": uint64(math.MaxUint64), "hosts": []string{"x"}})
	var r Reader = f
	if r.Duration("timeout", 0) != 1500*time.Millisecond || r.Int(`a\.b`, 0) != 1 || r.String("hosts.0", "") != "x" ||
		r.Float("big", 0) != 18446744073709551615 || r.String("big", "") != "18446744073709551615" {
		t.Error("not the document")
	}
	if age, ok := r.Age(); !ok || age > time.Minute || r.Stale() || r.Generation() != 1 {
		t.Error(age, ok)
	}
	f.SetAge(time.Hour, time.Minute)
	if age, ok := r.Age(); !ok || age < time.Hour || !r.Stale() {
		t.Error(age, ok)
	}
	k := r.Key("db.host")
	done := waitFor(f.Config, context.Background(), 1)
	if err := f.Set("db.host", "b"); err != nil {
		t.Fatal(err)
	}
	if err := result(t, done); err != nil || k.String("") != "b" || r.Int("db.port", 0) != 1 || r.Stale() {
		t.Error(err, k.String(""))
	}
	changed := r.Changed(context.Background())
	f.Damage()
	<-changed
	if _, err := r.Refresh(); !errors.Is(err, ErrDamaged) || k.String("") != "b" {
		t.Error(err)
	}
	f.Withdraw()
	<-changed
	if _, err := r.Refresh(); !errors.Is(err, ErrWithdrawn) || !r.Withdrawn() {
		t.Error(err)
	}
	if err := f.Set("new.deep", []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if moved, err := r.Refresh(); !moved || err != nil || r.Int("new.deep.1", 0) != 2 || k.String("") != "b" {
		t.Error(moved, err)
	}
	if moved, err := r.Refresh(); moved || err != nil {
		t.Error(moved, err)
	}
	for key, v := range map[string]any{"db.host.x": 1, "hosts.0": "y", "x": func() {}, "nul": "a\x00", "utf": "\xff"} {
		if err := f.Set(key, v); err == nil || !strings.HasPrefix(err.Error(), "pullet: ") {
			t.Error(key, err)
		}
	}
	for _, doc := range []any{nil, 1, "[1]", "{", "{} {}", map[int]int{1: 1}, struct{}{}} {
		if _, err := NewFake(doc); err == nil || !strings.HasPrefix(err.Error(), "pullet: ") {
			t.Errorf("%v: %v", doc, err)
		}
	}
	_ = f.Close()
	if r.Count() != 0 {
		t.Error("not closed")
	}
}

func ExampleFake() {
	greeting := func(config Reader) string { return "hello " + config.String("name", "world") }
	fake, err := NewFake(`{"name": "you"}`)
	if err != nil {
		panic(err)
	}
	fmt.Println(greeting(fake))
	_ = fake.Set("name", "all")
	_, _ = fake.Refresh()
	fmt.Println(greeting(fake))
	// Output:
	// hello you
	// hello all
}
