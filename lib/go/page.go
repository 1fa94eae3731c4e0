package pullet

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The control page: lib/FORMAT.md.
const (
	pageSize      = 4096
	pageMagic     = uint64(0x01504E45474C5550) // "PULGENP\x01" as a little-endian number
	clockBoottime = 7
)

// A page is the mapped control page; like an image it is unmapped by a finalizer.
type page struct {
	data []byte
	file os.FileInfo
}

// openPage maps the page at path; nil when there is none, it is being made, or it is something else:
// the page is optional.
func openPage(path string) *page {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not block
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() != pageSize {
		return nil
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, pageSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	p := &page{data: data, file: st}
	if p.load(0) != pageMagic {
		p.unmap()
		return nil
	}
	runtime.SetFinalizer(p, (*page).unmap)
	return p
}

// isAt tells whether this is the page at path, or nothing is.
func (p *page) isAt(path string) bool {
	st, err := os.Stat(path)
	return err != nil || os.SameFile(st, p.file)
}

func (p *page) unmap() {
	if p.data != nil && p.file != nil { // not a Fake's
		_ = syscall.Munmap(p.data)
		p.data = nil
	}
}

func (p *page) word64(at int) *uint64 { return (*uint64)(unsafe.Pointer(&p.data[at])) }
func (p *page) word32(at int) *uint32 { return (*uint32)(unsafe.Pointer(&p.data[at])) }

// bytesOf are the bytes of some words, aligned as these are.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}

func (p *page) load(at int) uint64 {
	n := atomic.LoadUint64(p.word64(at))
	runtime.KeepAlive(p)
	return n
}

func (p *page) generation() uint64 { return p.load(8) }
func (p *page) confirmed() uint64  { return p.load(24) }
func (p *page) staleAfter() uint64 { return p.load(32) }

// withdrawn: the image is gone, on purpose.
func (p *page) withdrawn() bool {
	n := atomic.LoadUint32(p.word32(20))
	runtime.KeepAlive(p)
	return n != 0
}

func (p *page) futex() uint32 {
	n := atomic.LoadUint32(p.word32(16))
	runtime.KeepAlive(p)
	return n
}

// bootMillis is CLOCK_BOOTTIME: since the machine's start, suspend included.
func bootMillis() (uint64, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime,
		uintptr(unsafe.Pointer(&ts)), 0)
	return uint64(ts.Nano() / int64(time.Millisecond)), errno == 0
}
