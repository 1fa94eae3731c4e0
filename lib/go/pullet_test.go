package pullet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestXXH64(t *testing.T) {
	for input, want := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"as":  0x1c330fb2d66be179,
		"asd": 0x631c37ce72a97393,
		"abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition":                         0xfbcea83c8a378bf1,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		if got := xxh64([]byte(input)); got != want {
			t.Errorf("%q: %x, want %x", input, got, want)
		}
	}
}

// TestXXH3: all lengths, of a text that xxHash's own library was given as well.
func TestXXH3(t *testing.T) {
	b := make([]byte, hashedKey)
	for i := range b {
		b[i] = byte(i*37 + 11)
	}
	sum := uint64(0)
	for n := 0; n <= hashedKey; n++ {
		sum = sum*31 + xxh3(string(b[:n]))
	}
	if sum != 0x43eeb05fe74378dc {
		t.Errorf("%x", sum)
	}
}

func TestLongKeys(t *testing.T) {
	var entries []entry
	for n := hashedKey - 2; n < hashedKey+20; n++ {
		entries = append(entries, text(strings.Repeat("k", n), fmt.Sprint(n)))
	}
	a := newAgent(t)
	a.publish(1, "v", entries...)
	c := a.open()
	for _, e := range entries {
		if c.String(e.key, "") != e.text {
			t.Errorf("%d: %q", len(e.key), c.String(e.key, ""))
		}
	}
	for n := 0; n < 2*hashedKey; n++ {
		if _, ok := c.Get(strings.Repeat("k", n) + "l"); ok {
			t.Errorf("found, with %d", n)
		}
	}
}

func TestTyped(t *testing.T) {
	a := newAgent(t)
	number := 0.5
	a.publish(1, "v", entry{"int", Int, 31, "0x1F"}, entry{"neg", Int, ^uint64(0), "-1"},
		entry{"half", Float, 0x3fe0000000000000, "5e-1"}, entry{"yes", Bool, 1, "true"},
		entry{"null", Null, 0, ""}, entry{"list", List, 2, ""}, text("t.int", "42"),
		text("t.space", " 42"), text("t.float", "0.5"), text("t.inf", "inf"), text("t.hex", "0x10"),
		text("t.bool", "false"), text("t.Bool", "True"), text("d.ms", "500ms"), text("d.d", "2d"),
		text("d.bad", "5"), text("d.two", "1h5m"), text("d.huge", "999999999999d"),
		text("s.kib", "64KiB"), text("s.tib", "1TiB"), text("s.kb", "1kB"), text("s.huge", "9999999999TiB"))
	c := a.open()
	for _, x := range []struct{ what, got, want any }{
		{"String int", c.String("int", "x"), "0x1F"},
		{"String bool", c.String("yes", "x"), "true"},
		{"String null", c.String("null", "x"), "x"},
		{"String list", c.String("list", "x"), "x"},
		{"String none", c.String("none", "x"), "x"},
		{"Int", c.Int("int", 5), int64(31)},
		{"Int negative", c.Int("neg", 5), int64(-1)},
		{"Int text", c.Int("t.int", 5), int64(42)},
		{"Int space", c.Int("t.space", 5), int64(5)},
		{"Int float", c.Int("half", 5), int64(5)},
		{"Float", c.Float("half", 2), number},
		{"Float int", c.Float("int", 2), 31.0},
		{"Float text", c.Float("t.float", 2), number},
		{"Float inf", c.Float("t.inf", 2), 2.0},
		{"Float hex", c.Float("t.hex", 2), 2.0},
		{"Float bool", c.Float("yes", 2), 2.0},
		{"Bool", c.Bool("yes", false), true},
		{"Bool text", c.Bool("t.bool", true), false},
		{"Bool Text", c.Bool("t.Bool", false), false},
		{"Bool int", c.Bool("int", true), true},
		{"Duration ms", c.Duration("d.ms", 0), 500 * time.Millisecond},
		{"Duration d", c.Duration("d.d", 0), 48 * time.Hour},
		{"Duration without unit", c.Duration("d.bad", 1), time.Duration(1)},
		{"Duration of two", c.Duration("d.two", 1), 65 * time.Minute},
		{"Duration huge", c.Duration("d.huge", 1), time.Duration(1)},
		{"Duration int", c.Duration("int", 1), time.Duration(1)},
		{"Size", c.Size("s.kib", 0), int64(64 << 10)},
		{"Size tib", c.Size("s.tib", 0), int64(1 << 40)},
		{"Size int", c.Size("int", 0), int64(31)},
		{"Size text", c.Size("t.int", 0), int64(42)},
		{"Size kB", c.Size("s.kb", 7), int64(7)},
		{"Size huge", c.Size("s.huge", 7), int64(7)},
		{"Type", Float.String(), "double"},
	} {
		if x.got != x.want {
			t.Errorf("%v: %v, want %v", x.what, x.got, x.want)
		}
	}
}

func TestKey(t *testing.T) {
	a := newAgent(t)
	a.start()
	c := a.open(WaitFirst)
	k, absent := c.Key("k"), c.Key("absent")
	check := func(want string, n int64) {
		t.Helper()
		for i := 0; i < 2; i++ { // the second time it is known
			v, ok := k.Get()
			if k.String("x") != want || k.Int(5) != n || ok != (want != "x") || ok && v.Text != want {
				t.Errorf("%q %d %v %v, want %q", k.String("x"), k.Int(5), v, ok, want)
			}
			if _, ok := absent.Get(); ok || absent.String("y") != "y" || absent.Bool(true) != true {
				t.Error("there is one")
			}
		}
	}
	check("x", 5)
	a.publish(1, "one", text("k", "1"))
	check("x", 5)
	moved(t, c, true)
	check("1", 1)
	a.publish(2, "two", text("k", "two"), text("other", "2"))
	check("1", 1)
	moved(t, c, true)
	check("two", 5)
	a.publish(3, "three", text("other", "3"))
	moved(t, c, true)
	check("x", 5)
	a.publish(4, "four", text("k", "4"))
	moved(t, c, true)
	check("4", 4)
	c.Close()
	check("x", 5)
	if k.Name() != "k" {
		t.Error(k.Name())
	}
}

func TestEach(t *testing.T) {
	a := newAgent(t)
	a.publish(1, "v", text("a", ""), text("s.0", ""), text("s.1", ""), text("s.2", ""), text("t", ""))
	c := a.open()
	var keys []string
	take := func(key string, v Value) bool {
		keys = append(keys, key)
		return len(keys) < 5
	}
	if !c.Each("s.", take) || fmt.Sprint(keys) != "[s.0 s.1 s.2]" {
		t.Error(keys)
	}
	if c.Each("", take) || fmt.Sprint(keys) != "[s.0 s.1 s.2 a s.0]" {
		t.Error(keys)
	}
	if !c.Each("none", take) {
		t.Error("stopped at nothing")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PULLET_RUNTIME_DIR", dir)
	a := newAgent(t)
	a.write([]byte("PULSNAP"))
	for name, want := range map[string]error{
		"web": ErrNotPublished, "": fs.ErrInvalid, ".web": fs.ErrInvalid, "we b": fs.ErrInvalid,
		strings.Repeat("x", 65): fs.ErrInvalid, a.path: ErrDamaged, dir + "/": ErrForeign,
		"/dev/null": ErrForeign,
	} {
		if _, err := Open(name); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "web.snap"), build(1, "v"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Open("web")
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"wbe": "did you mean 'web'?", "none": "there is web", "we": "there is web"} {
		if _, err := Open(name); !strings.HasSuffix(err.Error(), says) {
			t.Error(err)
		}
	}
	t.Setenv("PULLET_RUNTIME_DIR", dir+"/none")
	if _, err := Open("web"); !strings.Contains(err.Error(), "there is no directory "+dir+"/none: is the agent running?") {
		t.Error(err)
	}
	if says := published("/dev/null/web.snap"); !strings.HasSuffix(says, " /dev/null: not a directory") {
		t.Error(says)
	}
	if says := whoMayRead("/dev/null/none"); says != "/dev/null may be read by root and the agent's user only" {
		t.Error(says)
	}
	if err := os.Chown(dir, -1, 1); err == nil { // root's
		if says := whoMayRead(dir + "/none"); !strings.Contains(says, dir+" may be read by the group daemon only: add") {
			t.Error(says)
		}
		if err := os.Chown(dir, -1, 543210); err != nil {
			t.Error(err)
		}
		if says := whoMayRead(dir + "/none"); !strings.Contains(says, dir+" may be read by the group 543210 only: add") {
			t.Error(says)
		}
		if err := os.Chmod(dir, 0o740); err != nil {
			t.Error(err)
		}
		if says := whoMayRead(dir + "/none"); says != dir+" may be read by root and the agent's user only" {
			t.Error(says)
		}
	}
	if c.Version() != "v" || c.Close() != nil || c.Close() != nil || c.Version() != "" {
		t.Error("not closed well")
	}
	if _, err := c.Refresh(); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if err := c.Wait(context.Background()); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

func moved(t *testing.T, c *Config, want bool) {
	t.Helper()
	if got, err := c.Refresh(); got != want || err != nil {
		t.Errorf("moved %v %v, want %v", got, err, want)
	}
}

func TestRefresh(t *testing.T) {
	for _, page := range []bool{false, true} {
		t.Run(fmt.Sprint("page ", page), func(t *testing.T) {
			a := newAgent(t)
			if page {
				a.start()
			}
			c := a.open(WaitFirst)
			moved(t, c, false)
			if c.Generation() != 0 || c.String("k", "x") != "x" || c.Count() != 0 {
				t.Error("not empty")
			}
			a.publish(1, "one", text("k", "1"))
			moved(t, c, true)
			moved(t, c, false)
			a.publish(2, "two", text("k", "2"))
			if c.String("k", "") != "1" {
				t.Error("moved by itself")
			}
			moved(t, c, true)
			if c.String("k", "") != "2" || c.Generation() != 2 || c.Version() != "two" {
				t.Error("not the second")
			}
			bad := build(3, "three")
			bad[40] ^= 1
			a.write(bad)
			if page {
				a.announce(3)
			}
			if _, err := c.Refresh(); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			if c.String("k", "") != "2" {
				t.Error("the second is lost")
			}
			for _, value := range []string{"lost", "again"} { // the agent lost its state, twice
				a.publish(1, value, text("k", value))
				moved(t, c, true)
				moved(t, c, false)
				if c.String("k", "") != value {
					t.Error("not " + value)
				}
			}
			if page {
				return
			}
			a.start() // a page comes later
			a.publish(4, "four")
			moved(t, c, true)
			moved(t, c, false)
			if !c.upToDate() {
				t.Error("the page was not found")
			}
		})
	}
}

func TestAge(t *testing.T) {
	a := newAgent(t)
	a.publish(1, "v")
	c := a.open()
	if _, ok := c.Age(); ok || !c.Stale() {
		t.Error("an age without a page")
	}
	a.start()
	a.publish(2, "w")
	moved(t, c, true)
	if _, ok := c.Age(); ok || !c.Stale() {
		t.Error("an age before a confirmation")
	}
	now, _ := bootMillis()
	a.store(24, now)
	if age, ok := c.Age(); !ok || age < 0 || age > time.Minute || c.Stale() {
		t.Error(age, ok)
	}
	a.store(32, 1)
	a.store(24, now-1)
	if age, ok := c.Age(); !ok || age < time.Millisecond || !c.Stale() {
		t.Error(age, ok)
	}
	a.store(24, now+3600e3)
	if age, ok := c.Age(); !ok || age != 0 {
		t.Error(age, ok)
	}
}

// waitFor runs n Waits beside the test.
func waitFor(c *Config, ctx context.Context, n int) <-chan error {
	done := make(chan error, n)
	for ; n > 0; n-- {
		go func() { done <- c.Wait(ctx) }()
	}
	return done
}

func result(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the wait does not end")
		return nil
	}
}

func TestWait(t *testing.T) {
	a := newAgent(t)
	c := a.open(WaitFirst)
	two := waitFor(c, context.Background(), 2)
	a.start()
	for g := uint64(1); g <= 2; g++ { // one that began late waits for the second
		a.publish(g, "v")
		if err := result(t, two); err != nil || c.Generation() == 0 {
			t.Error(err, c.Generation())
		}
	}
	// Woken, not found at the end of a slice: of many waits the quickest is far below one.
	quickest := time.Hour
	for g := uint64(3); g < 13; g++ {
		_, _ = c.Refresh()
		done := waitFor(c, context.Background(), 1)
		time.Sleep(5 * time.Millisecond) // so that most of them sleep; right without it
		started := time.Now()
		a.publish(g, "v")
		if err := result(t, done); err != nil || c.Generation() != g {
			t.Error(err, c.Generation())
		}
		if d := time.Since(started); d < quickest {
			quickest = d
		}
	}
	if quickest > blindLook/4 {
		t.Errorf("the quickest wait took %v", quickest)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := waitFor(c, ctx, 1)
	cancel()
	if err := result(t, done); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := c.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	done = waitFor(c, context.Background(), 1)
	a.write([]byte("rubbish"))
	a.announce(99)
	if err := result(t, done); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	done = waitFor(c, context.Background(), 1)
	_ = c.Close()
	if err := result(t, done); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

func TestWithdrawn(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.publish(1, "v")
	c := a.open()
	is := func(err error) bool { return errors.Is(err, ErrWithdrawn) && errors.Is(err, ErrNotPublished) }
	if c.Withdrawn() || errors.Is(ErrNotPublished, ErrWithdrawn) {
		t.Error("withdrawn at once")
	}
	a.withdraw()
	if _, known := c.Age(); known || !c.Withdrawn() || !c.Stale() {
		t.Error("nothing is seen without a refresh")
	}
	for i := 0; i < 2; i++ { // not once: nobody goes on without knowing
		if moved, err := c.Refresh(); moved || !is(err) {
			t.Error(moved, err)
		}
	}
	if c.Generation() != 1 {
		t.Error(c.Generation())
	}
	if _, err := Open(a.path); !is(err) {
		t.Error(err)
	}
	if empty := a.open(WaitFirst); !empty.Withdrawn() || empty.Generation() != 0 {
		t.Error(empty.Generation())
	} else if moved, err := empty.Refresh(); moved || err != nil {
		t.Error(moved, err)
	}
	done := waitFor(c, context.Background(), 1) // for its return: that it is gone was said
	a.publish(1, "v")                           // the same: it is there again all the same
	if err := result(t, done); err != nil || c.Withdrawn() {
		t.Error(err)
	}
	if moved, err := c.Refresh(); moved || err != nil {
		t.Error(moved, err)
	}
	done = waitFor(c, context.Background(), 1)
	a.withdraw()
	if err := result(t, done); !is(err) {
		t.Error(err)
	}
	a.publish(2, "w")
	if moved, err := c.Refresh(); !moved || err != nil || c.Generation() != 2 {
		t.Error(moved, err)
	}
}

// TestGoroutines: lookups beside moves see whole versions; replaced images are unmapped.
func TestGoroutines(t *testing.T) {
	const last = 300
	a := newAgent(t)
	a.start()
	a.publish(1, "1", text("a", "1"), text("b", "1"))
	c := a.open()
	idle, shared := c.Key("a"), c.Key("a") // one keeps no image mapped
	idle.String("")
	var readers sync.WaitGroup
	for i := 0; i < 4; i++ {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for c.Generation() < last {
				if _, err := c.Refresh(); err != nil {
					t.Error(err)
					return
				}
				before := c.Generation()
				if n := shared.Int(0); n < int64(before) || n > int64(c.Generation()) {
					t.Error(before, n, c.Generation())
					return
				}
				var pair []string
				c.Each("", func(key string, v Value) bool {
					pair = append(pair, v.Text)
					return true
				})
				if len(pair) != 2 || pair[0] != pair[1] || c.String("a", "") == "" {
					t.Error(pair)
					return
				}
			}
		}()
	}
	for g := uint64(2); g <= last; g++ {
		s := fmt.Sprint(g)
		a.publish(g, s, text("a", s), text("b", s))
		if g%50 == 0 {
			runtime.GC()
		}
	}
	readers.Wait()
	until := time.Now().Add(20 * time.Second)
	for n := mapped(t, a.path); n > 1; n = mapped(t, a.path) {
		if time.Now().After(until) {
			t.Fatalf("%d images are mapped", n)
		}
		runtime.GC()
		runtime.Gosched()
	}
	if c.Generation() != last {
		t.Error(c.Generation())
	}
}

// TestRetired: a program that allocates next to nothing, so that the runtime collects nothing, keeps
// no more than a bound of replaced versions.
func TestRetired(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	a := newAgent(t)
	a.start()
	big := strings.Repeat("x", 1<<20)
	image := build(1, "1", text("a", big))
	a.write(image)
	a.announce(1)
	c := a.open()
	until := time.Now().Add(20 * time.Second)
	for g := uint64(2); g <= 200; g++ {
		a.write(image)
		a.announce(g)
		if _, err := c.Refresh(); err != nil {
			t.Fatal(err)
		}
		for n := mapped(t, a.path); n > 40; n = mapped(t, a.path) {
			if time.Now().After(until) {
				t.Fatalf("%d images of 1 MiB are mapped after %d", n, g)
			}
			runtime.Gosched()
		}
	}
	_ = c.Close()
}

func mapped(t *testing.T, path string) int {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), path)
}

func benchmark(b *testing.B) *Config {
	a := newAgent(b)
	var entries []entry
	for i := 0; i < 1000; i++ {
		entries = append(entries, entry{fmt.Sprintf("server.%d.port", i), Int, uint64(i), fmt.Sprint(i)})
	}
	a.start()
	a.publish(1, "v", entries...)
	c := a.open()
	b.ResetTimer()
	return c
}

func BenchmarkInt(b *testing.B) {
	c := benchmark(b)
	for i := 0; i < b.N; i++ {
		c.Int("server.333.port", 0)
	}
}

func BenchmarkString(b *testing.B) {
	c := benchmark(b)
	for i := 0; i < b.N; i++ {
		c.String("server.333.port", "")
	}
}

func BenchmarkKey(b *testing.B) {
	k := benchmark(b).Key("server.333.port")
	for i := 0; i < b.N; i++ {
		k.String("")
	}
}

func BenchmarkRefresh(b *testing.B) {
	c := benchmark(b)
	for i := 0; i < b.N; i++ {
		_, _ = c.Refresh()
	}
}

func BenchmarkGetenv(b *testing.B) {
	b.Setenv("SERVER_333_PORT", "333")
	for i := 0; i < b.N; i++ {
		_ = os.Getenv("SERVER_333_PORT")
	}
}

func BenchmarkParseFile(b *testing.B) {
	text := "a=1\nb=2\nc=3\nserver.port=333\ne=5\nf=6\ng=7\nh=8\ni=9\nj=10\n"
	for i := 0; i < b.N; i++ {
		m := map[string]string{}
		for _, line := range strings.Split(text, "\n") {
			if key, value, ok := strings.Cut(line, "="); ok {
				m[key] = value
			}
		}
		_ = m["server.port"]
	}
}
