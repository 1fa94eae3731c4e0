package pullet

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Waiting costs no thread: one inotify descriptor of the process, which the runtime polls, hints that
// a file was renamed. The page says it a moment later, so a hint only starts the looks again, in
// intervals that double from firstLook on; lastLook bounds what a lost event could cost.
const (
	firstLook = 50 * time.Microsecond
	lastLook  = 10 * time.Second
	blindLook = 100 * time.Millisecond // the longest interval without inotify
)

const watchMask = syscall.IN_MOVED_TO | syscall.IN_MOVED_FROM | syscall.IN_CREATE | syscall.IN_DELETE |
	syscall.IN_CLOSE_WRITE | syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

// A hint hears that the files of one waiter may have changed.
type hint struct {
	c     chan struct{} // of one
	dir   string
	names [2]string
	wd    int32 // 0 = not watched
}

func newHint(files ...string) *hint {
	h := &hint{c: make(chan struct{}, 1)}
	for i, f := range files {
		h.dir, h.names[i] = filepath.Dir(f), filepath.Base(f)
	}
	return h
}

func (h *hint) tell() {
	select {
	case h.c <- struct{}{}:
	default: // it has not heard of the one before
	}
}

// A watcher shares one descriptor among all hints; it has one, and a goroutine, while there are any.
type watcher struct {
	mu   sync.Mutex
	fd   int
	file *os.File // nil while nobody waits
	dirs map[int32]map[*hint]bool
}

var inotify watcher // of the process: a user has 128 of them

// add watches the directory of a hint; false when that is not possible now. A hint that is watched
// stays so.
func (w *watcher) add(h *hint) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.wd != 0 {
		return true
	}
	if w.file == nil {
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
		if err != nil {
			return false
		}
		w.fd, w.file, w.dirs = fd, os.NewFile(uintptr(fd), "inotify"), map[int32]map[*hint]bool{}
		go w.read(w.file)
	}
	wd, err := syscall.InotifyAddWatch(w.fd, h.dir, watchMask)
	if err != nil {
		w.closeUnused()
		return false
	}
	h.wd = int32(wd)
	if w.dirs[h.wd] == nil {
		w.dirs[h.wd] = map[*hint]bool{}
	}
	w.dirs[h.wd][h] = true
	return true
}

func (w *watcher) remove(h *hint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.wd != 0 {
		delete(w.dirs[h.wd], h)
		if len(w.dirs[h.wd]) == 0 {
			delete(w.dirs, h.wd)
			_, _ = syscall.InotifyRmWatch(w.fd, uint32(h.wd))
		}
		h.wd = 0
	}
	w.closeUnused()
}

func (w *watcher) closeUnused() {
	if len(w.dirs) == 0 && w.file != nil {
		_ = w.file.Close() // ends its read
		w.file = nil
	}
}

func (w *watcher) read(file *os.File) {
	b := make([]byte, 64<<10)
	for {
		n, err := file.Read(b)
		if err != nil {
			return
		}
		w.mu.Lock()
		for at := 0; w.file == file && at+syscall.SizeofInotifyEvent <= n; {
			e := b[at:n]
			end := syscall.SizeofInotifyEvent + int(binary.LittleEndian.Uint32(e[12:]))
			w.event(int32(binary.LittleEndian.Uint32(e)), binary.LittleEndian.Uint32(e[4:]),
				strings.TrimRight(string(e[syscall.SizeofInotifyEvent:end]), "\x00"))
			at += end
		}
		w.mu.Unlock()
	}
}

// event tells those whose file it is; all of them where the queue has run over; all of a directory
// where that is gone, which is looked for again.
func (w *watcher) event(wd int32, mask uint32, name string) {
	const gone = syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF | syscall.IN_UNMOUNT | syscall.IN_IGNORED
	for dir, hints := range w.dirs {
		for h := range hints {
			if wd == -1 || dir == wd && (mask&gone != 0 || name == h.names[0] || name == h.names[1]) {
				h.tell()
			}
			if dir == wd && mask&gone != 0 {
				h.wd = 0
			}
		}
	}
	if mask&gone != 0 && w.dirs[wd] != nil {
		delete(w.dirs, wd)
		_, _ = syscall.InotifyRmWatch(w.fd, uint32(wd)) // one that was moved is watched still
	}
}

// follow calls look at once, and when the files may have changed, until it says that it is done or
// fails, ctx is done, or c is closed.
func (c *Config) follow(ctx context.Context, look func() (done bool, err error)) error {
	h := c.from.hint()
	defer c.from.unwatch(h)
	told := true
	for pause := firstLook; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		longest := lastLook
		if !c.from.watch(h) { // before the look: nothing is missed
			longest, told = blindLook, true
		} else if told {
			told = !c.renewPage()
		}
		if done, err := look(); done || err != nil {
			return err
		}
		if c.isClosed() {
			return fs.ErrClosed
		}
		if pause > longest {
			pause = longest
		}
		timer := time.NewTimer(pause)
		select {
		case <-h.c:
			pause, told = firstLook, true
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
		case <-c.done:
		}
		timer.Stop()
	}
}

// renewPage goes over to another page that is at the path now, once it says something: an agent that
// was started again, where the directory did not outlive it, never changes the old one. The next
// Refresh looks. False when there is one that says nothing yet.
func (c *Config) renewPage() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.page.Load()
	if have == nil || c.isClosed() {
		return true
	}
	p := c.from.pageAfter(have)
	if p != have && p.generation() == 0 && !p.withdrawn() {
		p.unmap()
		return false
	}
	if p != have {
		c.page.Store(p)
		c.seen.Store(p.futex() - 1)
	}
	return true
}

// Wait sleeps until there is a newer version than the one that is open, and moves to it. It returns
// at once when the agent publishes, when ctx is done (with its error) or when c is closed. It holds
// no thread: inotify wakes it. Where there is none (no more descriptors, or the directory is not there
// yet) it looks ten times a second. It returns ErrWithdrawn once; the next Wait, or one after a
// Refresh that did, waits for the config to come back.
func (c *Config) Wait(ctx context.Context) error {
	start := c.current.Load().digest
	known := c.gone.Load()
	return c.follow(ctx, func() (bool, error) {
		_, err := c.Refresh()
		if known && errors.Is(err, ErrWithdrawn) {
			return false, nil
		}
		return c.current.Load().digest != start || known && err == nil, err
	})
}

// Changed returns a channel for a select: it can be received from when there is something newer than
// what is open, and again whenever that is so anew, until ctx is done or c is closed, and then it is
// closed. c does not move by itself: call Refresh where it suits. It may come once too often, never
// too seldom; changes that nobody received are one.
//
//	for changed := c.Changed(ctx); ; {
//		select {
//		case _, ok := <-changed:
//			if !ok {
//				return
//			}
//			moved, err := c.Refresh()
//			...
//		case r := <-requests:
//			...
//		}
//	}
func (c *Config) Changed(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		var told mark
		_ = c.follow(ctx, func() (bool, error) {
			if m, newer := c.newest(); newer && m != told {
				told = m
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			return false, nil
		})
	}()
	return changed
}

// A mark tells one state of the files from the next.
type mark struct {
	futex    uint64 // with a bit above it; 0 = there is no page
	dev, ino uint64 // of the image, where there is no page
}

// newest tells whether the files are newer than what is open.
func (c *Config) newest() (mark, bool) {
	if c.isClosed() {
		return mark{}, false
	}
	if p := c.page.Load(); p != nil {
		futex := p.futex()
		return mark{futex: 1<<32 | uint64(futex)}, futex != c.seen.Load()
	}
	dev, ino, ok := c.from.stat()
	img := c.current.Load()
	return mark{dev: dev, ino: ino}, ok && (dev != img.dev || ino != img.ino)
}
