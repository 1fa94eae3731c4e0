package pullet

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

func text(key, value string) entry { return entry{key, String, 0, value} }

// An agent writes as the real one does: rename, generation, futex, wake.
type agent struct {
	t    testing.TB
	path string // of the image
	page []byte // mapped; nil without a page
}

func newAgent(t testing.TB) *agent {
	return &agent{t: t, path: filepath.Join(t.TempDir(), "web.snap")}
}

func (a *agent) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) start() {
	name := filepath.Join(filepath.Dir(a.path), "web.gen")
	b := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(b, pageMagic)
	a.check(os.WriteFile(name, b, 0o644))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	a.check(err)
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, pageSize, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	a.check(err)
	a.page = page
	a.t.Cleanup(func() { _ = syscall.Munmap(page) })
}

func (a *agent) store(at int, n uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&a.page[at])), n)
}

func (a *agent) write(image []byte) {
	a.check(os.WriteFile(a.path+".tmp", image, 0o644))
	a.check(os.Rename(a.path+".tmp", a.path))
}

func (a *agent) announce(generation uint64) {
	a.setWithdrawn(0)
	a.store(8, generation)
	a.wake()
}

func (a *agent) withdraw() {
	a.check(os.Remove(a.path))
	a.setWithdrawn(1)
	a.store(24, 0)
	a.wake()
}

func (a *agent) setWithdrawn(n uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&a.page[20])), n)
}

func (a *agent) wake() {
	const wake = 1 // FUTEX_WAKE
	word := (*uint32)(unsafe.Pointer(&a.page[16]))
	atomic.AddUint32(word, 1)
	_, _, errno := syscall.Syscall(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wake, math.MaxInt32)
	if errno != 0 {
		a.t.Fatal(errno)
	}
}

func (a *agent) publish(generation uint64, version string, entries ...entry) {
	a.write(build(generation, version, entries...))
	if a.page != nil {
		a.announce(generation)
	}
}

func (a *agent) open(opts ...Option) *Config {
	a.t.Helper()
	c, err := Open(a.path, opts...)
	a.check(err)
	a.t.Cleanup(func() { _ = c.Close() })
	return c
}
