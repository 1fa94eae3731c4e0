package pullet

import (
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// The layout of an image: lib/FORMAT.md.
const (
	imageMagic  = "PULSNAP\x01"
	headerSize  = 64
	recordSize  = 16
	maxImage    = 1<<32 - 8
	maxVersion  = 255
	maxTypeCode = uint8(Map)
)

// An image is one mapped generation. It never changes; its memory is unmapped by a finalizer, so
// whoever uses data keeps the image alive until it is done.
type image struct {
	data       []byte
	serial     uint64 // of all images of this process; 0 = nothing is open
	dev, ino   uint64
	generation uint64
	version    string
	count      int
	digest     uint64 // tells images apart that have the same generation
	slots      []byte
	order      []byte
	records    uint64
	mapped     bool
	retired    atomic.Int64 // bytes that are counted in retired
}

var images atomic.Uint64 // so far

// loadImage maps and checks the image at path; nil when it is the file that old has mapped: while a
// file is mapped its inode number is not used again.
func loadImage(path string, old *image) (*image, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not block
	if err != nil {
		if os.IsNotExist(err) {
			return nil, &Error{Path: path, Detail: "there is no such file", Err: ErrNotPublished}
		}
		return nil, err
	}
	defer f.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	dev, ino := uint64(st.Dev), uint64(st.Ino)
	if old != nil && old.data != nil && old.dev == dev && old.ino == ino {
		return nil, nil
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, &Error{Path: path, Detail: "not a regular file", Err: ErrForeign}
	}
	if st.Size < headerSize || st.Size > maxImage || st.Size > math.MaxInt {
		return nil, sizeError(f, path)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	img := &image{data: data, mapped: true, dev: dev, ino: ino}
	if detail, err := img.check(); err != nil {
		img.unmap()
		return nil, &Error{Path: path, Detail: detail, Err: err}
	}
	img.serial = images.Add(1)
	runtime.SetFinalizer(img, (*image).unmap)
	return img, nil
}

// sizeError tells a cut or oversized image from a file that never was one.
func sizeError(f *os.File, path string) error {
	var b [len(imageMagic)]byte
	n, _ := f.ReadAt(b[:], 0)
	if !strings.HasPrefix(imageMagic, string(b[:n])) {
		return &Error{Path: path, Detail: "not a snapshot", Err: ErrForeign}
	}
	return &Error{Path: path, Detail: "its length is out of bounds", Err: ErrDamaged}
}

func (m *image) unmap() {
	if m.data != nil {
		_ = syscall.Munmap(m.data)
		m.data = nil
	}
	retired.Add(-m.retired.Swap(0))
}

// The collector knows nothing of mapped memory: a program that allocates next to nothing would keep
// each version that it has seen, for two minutes, in memory that is the agent's if its directory is.
const maxRetired = 32 << 20

var (
	retired    atomic.Int64 // bytes of images that are of no use any more, but mapped
	collecting atomic.Bool
)

// retire is for an image that was replaced or closed; lookups may still use it.
func (m *image) retire() {
	if !m.mapped {
		return
	}
	page := int64(os.Getpagesize())
	n := (int64(len(m.data)) + page - 1) / page * page
	m.retired.Store(n)
	if retired.Add(n) > maxRetired && collecting.CompareAndSwap(false, true) {
		go func() {
			runtime.GC() // queues the finalizers
			collecting.Store(false)
		}()
	}
	runtime.KeepAlive(m)
}

// check is all that a reader must check before it uses an image, and takes the fields over.
func (m *image) check() (detail string, err error) {
	d, le := m.data, binary.LittleEndian
	size := uint64(len(d))
	u32 := func(at int) uint64 { return uint64(le.Uint32(d[at:])) }
	count, slotCount := u32(40), u32(44)
	slots, order, records, version := u32(48), u32(52), u32(56), u32(60)
	m.generation = le.Uint64(d[24:])

	switch {
	case string(d[:8]) != imageMagic:
		return "not a snapshot, or of another layout", ErrForeign
	case le.Uint64(d[16:]) != size:
		return "its length is not what it says", ErrDamaged
	case le.Uint64(d[8:]) != xxh64(d[16:]):
		return "its digest is wrong", ErrDamaged
	case m.generation == 0:
		return "it has no generation", ErrDamaged
	case slotCount < 2 || slotCount&(slotCount-1) != 0 || slotCount <= count:
		return "its number of slots is wrong", ErrDamaged
	case slots < headerSize || slots%64 != 0 || slots+8*slotCount > size:
		return "its index lies outside", ErrDamaged
	case order < headerSize || order%8 != 0 || order+4*count > size:
		return "its sorted list lies outside", ErrDamaged
	case records < headerSize || records%8 != 0 || records > size ||
		count > (size-records)/recordSize:
		return "its records lie outside", ErrDamaged
	case version < headerSize || version >= size:
		return "its version lies outside", ErrDamaged
	}
	text := d[version:]
	if len(text) > maxVersion+1 {
		text = text[:maxVersion+1]
	}
	n := strings.IndexByte(string(text), 0)
	if n < 0 {
		return "its version has no end", ErrDamaged
	}
	m.version = string(text[:n])
	m.count = int(count)
	m.digest = le.Uint64(d[8:])
	m.slots = d[slots : slots+8*slotCount]
	m.order = d[order : order+4*count]
	m.records = records
	return "", nil
}

// at gives the offset and key of the record at a place of the sorted list; false when it is not good.
func (m *image) at(place int) (o uint64, key []byte, ok bool) {
	o = uint64(binary.LittleEndian.Uint32(m.order[4*place:]))
	end, ok := m.good(o)
	if !ok {
		return 0, nil, false
	}
	return o, m.data[o+recordSize : end], true
}

// good tells whether there is a record at an offset, and where its key ends.
func (m *image) good(o uint64) (keyEnd uint64, ok bool) {
	d, size := m.data, uint64(len(m.data))
	if o < m.records || o%8 != 0 || o+recordSize > size {
		return 0, false
	}
	h := d[o : o+recordSize]
	lengths := binary.LittleEndian.Uint64(h[8:])
	keyEnd = o + recordSize + lengths>>32&0xffffff
	textEnd := keyEnd + 1 + lengths&0xffffffff
	if textEnd >= size || d[keyEnd]|d[textEnd] != 0 || h[15] > maxTypeCode {
		return 0, false
	}
	return keyEnd, true
}

// What is at the offset of a good record.
func (m *image) kind(o uint64) Type    { return Type(m.data[o+15]) }
func (m *image) value(o uint64) uint64 { return binary.LittleEndian.Uint64(m.data[o:]) }

func (m *image) text(o uint64) []byte {
	lengths := binary.LittleEndian.Uint64(m.data[o+8:])
	text := o + recordSize + lengths>>32&0xffffff + 1
	return m.data[text : text+lengths&0xffffffff]
}

// lowerBound is the first place whose key is not before key, or one before it when a record on the
// way is bad.
func (m *image) lowerBound(key string) int {
	low, high := 0, m.count
	for low < high {
		mid := int(uint(low+high) / 2)
		if _, k, ok := m.at(mid); ok && string(k) < key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// find gives the offset of a key's record, by its hash; that of a long one, which xxh3 does not take,
// by bisection. 0 when there is none: a header is there.
func (m *image) find(key string) uint64 {
	if len(key) > hashedKey {
		return m.bisect(key)
	}
	hash := xxh3(key)
	mask := len(m.slots) - 8 // of a place in bytes
	for n, at := 0, int(hash<<3)&mask; n < len(m.slots); n, at = n+8, (at+8)&mask {
		slot := binary.LittleEndian.Uint64(m.slots[at:])
		if slot>>32 == 0 {
			break
		}
		if uint32(slot) != uint32(hash>>32) {
			continue
		}
		o := slot >> 32
		if end, ok := m.good(o); ok && string(m.data[o+recordSize:end]) == key {
			return o
		}
	}
	return 0
}

// bisect looks a key up in the sorted list; where a bad record stands there is no direction, and it
// looks at each place from there on.
func (m *image) bisect(key string) uint64 {
	for i := m.lowerBound(key); i < m.count; i++ {
		if o, k, ok := m.at(i); ok && string(k) >= key {
			if string(k) == key {
				return o
			}
			break
		}
	}
	return 0
}

// each calls fn with each good record whose key begins with prefix, in order, until it returns false.
func (m *image) each(prefix string, fn func(key string, o uint64) bool) bool {
	for i := m.lowerBound(prefix); i < m.count; i++ {
		o, bytes, ok := m.at(i)
		if !ok {
			continue
		}
		key := string(bytes)
		if key < prefix {
			continue
		}
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if !fn(key, o) {
			return false
		}
	}
	return true
}

// copy takes the value of a good record out of the image.
func (m *image) copy(o uint64) Value {
	v := Value{Type: m.kind(o), Text: string(m.text(o))}
	switch v.Type {
	case Bool:
		v.Bool = m.value(o) != 0
	case Int:
		v.Int = int64(m.value(o))
	case Float:
		v.Float = math.Float64frombits(m.value(o))
	case List, Map:
		v.Count = m.value(o)
	}
	return v
}
