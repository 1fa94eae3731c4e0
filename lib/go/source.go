package pullet

import (
	"os"
	"strings"
	"syscall"
)

// A source is where the image and the page of a Config are: two files, or the memory of a Fake.
type source interface {
	load(old *image) (*image, error) // nil when old is the newest
	pageAfter(have *page) *page      // the one that is there now; have, where that is it, or nothing is
	stat() (dev, ino uint64, ok bool)
	hint() *hint
	watch(h *hint) bool // false when it cannot; again and again: it may have been lost
	unwatch(h *hint)
}

type files struct{ path, pagePath string }

func newFiles(path string) files {
	return files{path, strings.TrimSuffix(path, ".snap") + ".gen"}
}

func (f files) load(old *image) (*image, error) { return loadImage(f.path, old) }

func (f files) pageAfter(have *page) *page {
	if have == nil || !have.isAt(f.pagePath) { // one that was removed is another one now
		if there := openPage(f.pagePath); there != nil {
			return there
		}
	}
	return have
}

func (f files) stat() (dev, ino uint64, ok bool) {
	st, err := os.Stat(f.path)
	if err != nil {
		return 0, 0, false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return uint64(sys.Dev), sys.Ino, true
}

func (f files) hint() *hint        { return newHint(f.path, f.pagePath) }
func (f files) watch(h *hint) bool { return inotify.add(h) }
func (f files) unwatch(h *hint)    { inotify.remove(h) }
