package pullet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// until waits for what other goroutines bring about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// descriptors counts those of inotify that the process has open.
func descriptors(t *testing.T) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if link, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(link, "inotify") {
			n++
		}
	}
	return n
}

func threads(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestNoLeak: 200 who wait share one descriptor, hold no thread, and leave nothing when their context
// ends.
func TestNoLeak(t *testing.T) {
	a := newAgent(t)
	a.start()
	a.publish(1, "v")
	c := a.open()
	goroutines, before := runtime.NumGoroutine(), threads(t)
	ctx, cancel := context.WithCancel(context.Background())
	waits := waitFor(c, ctx, 100)
	var channels []<-chan struct{}
	for i := 0; i < 100; i++ {
		channels = append(channels, c.Changed(ctx))
	}
	until(t, "all wait", func() bool {
		inotify.mu.Lock()
		defer inotify.mu.Unlock()
		for _, hints := range inotify.dirs {
			return len(hints) == 200
		}
		return false
	})
	if n := descriptors(t); n != 1 {
		t.Errorf("%d descriptors", n)
	}
	if n := threads(t); n > before+runtime.GOMAXPROCS(0)+8 {
		t.Errorf("%d threads, %d before", n, before)
	}
	cancel()
	for i := 0; i < 100; i++ {
		if err := result(t, waits); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for range channels[i] {
			t.Error("a signal of nothing")
		}
	}
	until(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	until(t, "the descriptor is closed", func() bool { return descriptors(t) == 0 })
}

// TestEventLoop: one goroutine serves requests, and moves between two of them; a version is not
// missed, whatever the moment between the rename and the page.
func TestEventLoop(t *testing.T) {
	const last = 200
	a := newAgent(t)
	a.start()
	a.publish(1, "1", text("n", "1"))
	c := a.open()
	ctx, cancel := context.WithCancel(context.Background())
	requests, answers := make(chan string), make(chan string)
	moves := make(chan uint64, last)
	ended := make(chan error)
	go func() {
		changed := c.Changed(ctx)
		for {
			select {
			case _, ok := <-changed:
				if !ok {
					ended <- ctx.Err()
					return
				}
				if moved, err := c.Refresh(); err != nil {
					t.Error(err)
				} else if moved {
					moves <- c.Generation()
				}
			case key := <-requests:
				answers <- c.String(key, "")
			}
		}
	}()
	for g := uint64(2); g <= last; g++ {
		a.write(build(g, "v", text("n", fmt.Sprint(g))))
		for i := uint64(0); i < g%17; i++ {
			runtime.Gosched()
		}
		a.announce(g)
		for n := uint64(0); n != g; {
			select {
			case n = <-moves:
			case <-time.After(20 * time.Second):
				t.Fatalf("generation %d was missed", g)
			}
		}
		requests <- "n"
		if got := <-answers; got != fmt.Sprint(g) {
			t.Fatalf("%q, want %d", got, g)
		}
	}
	cancel()
	if err := result(t, ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestChanged(t *testing.T) {
	for _, page := range []bool{false, true} {
		t.Run(fmt.Sprint("page ", page), func(t *testing.T) {
			a := newAgent(t)
			if page {
				a.start()
			}
			c := a.open(WaitFirst)
			changed := c.Changed(context.Background())
			next := func() {
				t.Helper()
				select {
				case _, ok := <-changed:
					if !ok {
						t.Fatal("closed")
					}
				case <-time.After(20 * time.Second):
					t.Fatal("no signal")
				}
			}
			for g := uint64(1); g <= 3; g++ {
				a.publish(g, "v", text("g", fmt.Sprint(g)))
				for c.Generation() != g { // a signal too many is allowed
					next()
					if _, err := c.Refresh(); err != nil {
						t.Error(err)
					}
				}
			}
			late := c.Changed(context.Background())
			a.publish(4, "v") // before anybody waits, or after: it is told
			select {
			case <-late:
			case <-time.After(20 * time.Second):
				t.Fatal("no signal")
			}
			_ = c.Close()
			for range changed {
			}
			for range late {
			}
			for range c.Changed(context.Background()) {
				t.Error("a signal of what is closed")
			}
		})
	}
}

// TestDirectory: the directory comes after who waits, goes, and comes again.
func TestDirectory(t *testing.T) {
	a := newAgent(t)
	dir := t.TempDir() + "/run"
	a.path = dir + "/web.snap"
	c := a.open(WaitFirst)
	changed := c.Changed(context.Background())
	for g := uint64(1); g <= 3; g++ {
		a.check(os.Mkdir(dir, 0o755))
		a.publish(g, "v", text("g", fmt.Sprint(g)))
		for c.Generation() != g {
			select {
			case <-changed:
			case <-time.After(20 * time.Second):
				t.Fatal("no signal")
			}
			if _, err := c.Refresh(); err != nil {
				t.Error(err)
			}
		}
		a.check(os.RemoveAll(dir))
	}
	if err := c.Wait(context.Background()); !errors.Is(err, ErrNotPublished) {
		t.Error(err)
	}
}

// TestStartedAgain: who waits hears of an agent that was started again without its old directory.
func TestStartedAgain(t *testing.T) {
	a := newAgent(t)
	dir := t.TempDir() + "/run"
	c := (*Config)(nil)
	for g := uint64(1); g <= 4; g++ {
		a.check(os.Mkdir(dir, 0o755))
		a.path = dir + "/web.snap"
		done := make(<-chan error)
		if c != nil && g%2 == 0 {
			done = waitFor(c, context.Background(), 1) // before it is started
		}
		a.start()
		a.publish(g, "v", text("g", fmt.Sprint(g)))
		if c == nil {
			c = a.open()
		} else {
			if g%2 != 0 {
				done = waitFor(c, context.Background(), 1) // after
			}
			if err := result(t, done); err != nil || c.Generation() != g {
				t.Error(err, c.Generation())
			}
		}
		a.check(os.RemoveAll(dir))
	}
}
