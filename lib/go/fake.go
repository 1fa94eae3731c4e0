package pullet

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Fake is a Config in memory, for the tests of an application: no agent, no file. All that reads is
// the Config's own code; a test is the agent, and publishes, withdraws, damages.
//
//	fake, err := pullet.NewFake(`{"db": {"host": "a", "timeout": "10s"}}`)
//	serve(fake.Config)
//	err = fake.Set("db.host", "b") // Refresh, Wait and Changed see it
//
// What it publishes was confirmed just now, and never becomes stale: see SetAge. All methods may be
// called by any number of goroutines at once.
type Fake struct {
	*Config
	m *memory
}

// memory is the source of a Fake. The page is aligned for its words, which readers load at any time.
type memory struct {
	mu         sync.Mutex
	image      []byte // nil = none
	page       *page
	doc        map[string]any
	generation uint64
	hints      map[*hint]bool
}

// NewFake makes a config of a document: a text or bytes of JSON, or a map. Maps (with keys that are
// strings), slices and pointers are walked; a time.Duration is a text such as "1500ms", and what has
// a MarshalText is that text; structs are not taken.
func NewFake(doc any) (*Fake, error) {
	words := make([]uint64, pageSize/8)
	m := &memory{hints: map[*hint]bool{}, page: &page{data: bytesOf(words)}}
	binary.LittleEndian.PutUint64(m.page.data, pageMagic)
	f := &Fake{newConfig("(fake)", m), m}
	if err := f.Publish(doc); err != nil {
		return nil, err
	}
	_, err := f.look()
	return f, err
}

// Publish replaces the document by a new version, which Refresh, Wait and Changed see. After an error
// nothing has changed.
func (f *Fake) Publish(doc any) error {
	tree, err := treeOf(doc)
	if err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.publish(tree)
}

// Set publishes a version in which a key has another value: a scalar, a list or a map. Maps on the way
// are made; a list is replaced as a whole. The key is written as for Get.
func (f *Fake) Set(key string, value any) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	v, err := plain(key, reflect.ValueOf(value))
	if err != nil {
		return err
	}
	tree, err := with(f.m.doc, segments(key), v)
	if err != nil {
		return fmt.Errorf("pullet: %s: %w", key, err)
	}
	return f.m.publish(tree)
}

// Withdraw takes the config away, as an agent that has it no more: ErrWithdrawn until the next
// version.
func (f *Fake) Withdraw() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.image = nil
	f.m.store32(20, 1)
	f.m.store(24, 0)
	f.m.wake()
}

// Damage publishes what is no good: ErrDamaged, and the version that is open stays.
func (f *Fake) Damage() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.image = build(f.m.generation+1, "")
	f.m.image[8] ^= 1
	f.m.wake()
}

// SetAge sets the time since the server confirmed the version, and from which age on it is stale (0 =
// never). It holds until the next version.
func (f *Fake) SetAge(age, stale time.Duration) {
	now, _ := bootMillis()
	f.m.store(32, uint64(stale/time.Millisecond))
	f.m.store(24, now-uint64(age/time.Millisecond))
}

func (m *memory) publish(tree map[string]any) error {
	entries, err := flatten(nil, "", tree)
	if err != nil {
		return err
	}
	now, _ := bootMillis()
	m.generation++
	m.doc, m.image = tree, build(m.generation, "fake-"+strconv.FormatUint(m.generation, 10), entries...)
	m.store32(20, 0)
	m.store(24, now)
	m.store(32, 0)
	m.store(8, m.generation)
	m.wake()
	return nil
}

func (m *memory) store(at int, n uint64)   { atomic.StoreUint64(m.page.word64(at), n) }
func (m *memory) store32(at int, n uint32) { atomic.StoreUint32(m.page.word32(at), n) }

func (m *memory) wake() {
	atomic.AddUint32(m.page.word32(16), 1)
	for h := range m.hints {
		h.tell()
	}
}

func (m *memory) load(old *image) (*image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image == nil {
		return nil, &Error{Path: "(fake)", Detail: "there is no image", Err: ErrNotPublished}
	}
	if len(old.data) > 0 && &old.data[0] == &m.image[0] {
		return nil, nil
	}
	img := &image{data: m.image}
	if detail, err := img.check(); err != nil {
		return nil, &Error{Path: "(fake)", Detail: detail, Err: err}
	}
	img.serial = images.Add(1)
	return img, nil
}

func (m *memory) pageAfter(*page) *page            { return m.page }
func (m *memory) stat() (dev, ino uint64, ok bool) { return 0, 0, false } // there is a page

func (m *memory) hint() *hint {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := newHint()
	m.hints[h] = true
	return h
}

func (m *memory) watch(*hint) bool { return true }

func (m *memory) unwatch(h *hint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hints, h)
}

// treeOf makes plain maps, slices and scalars of a document.
func treeOf(doc any) (map[string]any, error) {
	switch text := doc.(type) {
	case string:
		return treeOf([]byte(text))
	case []byte:
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var tree map[string]any
		err := d.Decode(&tree)
		if _, after := d.Token(); err == nil && after != io.EOF {
			err = errors.New("there is more behind the document")
		}
		if err != nil {
			return nil, fmt.Errorf("pullet: the fake's JSON: %w", err)
		}
		doc = tree
	}
	v, err := plain("", reflect.ValueOf(doc))
	if err != nil {
		return nil, err
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("pullet: a fake's document is a map, not a %T", doc)
	}
	return tree, nil
}

// plain is a copy of a value, made of nil, bool, int64, uint64, float64, json.Number, string, []any
// and map[string]any.
func plain(key string, v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return strconv.FormatInt(x.Milliseconds(), 10) + "ms", nil
	case json.Number:
		return x, nil
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint(), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Pointer, reflect.Interface:
		return plain(key, v.Elem())
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			item, err := plain(join(key, strconv.Itoa(i)), v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		members := make(map[string]any, v.Len())
		for i := v.MapRange(); i.Next(); {
			member, err := plain(join(key, i.Key().String()), i.Value())
			if err != nil {
				return nil, err
			}
			members[i.Key().String()] = member
		}
		return members, nil
	}
	return nil, fmt.Errorf("pullet: %s: a fake takes no %s", key, v.Type())
}

// with is a copy of a tree that has another value at a place.
func with(tree map[string]any, path []string, value any) (map[string]any, error) {
	changed := make(map[string]any, len(tree)+1)
	for k, v := range tree {
		changed[k] = v
	}
	if len(path) > 1 {
		below, ok := tree[path[0]].(map[string]any)
		if _, there := tree[path[0]]; there && !ok {
			return nil, fmt.Errorf("%q is no map: set it as a whole", path[0])
		}
		var err error
		if value, err = with(below, path[1:], value); err != nil {
			return nil, err
		}
	}
	changed[path[0]] = value
	return changed, nil
}

// flatten adds the records of all that is in a plain map; prefix ends with a dot, or is "".
func flatten(entries []entry, prefix string, members map[string]any) ([]entry, error) {
	for name, v := range members {
		var err error
		if entries, err = flattenValue(entries, prefix+escapes.Replace(name), v); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func flattenValue(entries []entry, key string, v any) ([]entry, error) {
	e := entry{key: key, kind: String}
	switch x := v.(type) {
	case nil:
		e.kind = Null
	case bool:
		e.kind, e.text = Bool, strconv.FormatBool(x)
		if x {
			e.value = 1
		}
	case int64:
		e.kind, e.value, e.text = Int, uint64(x), strconv.FormatInt(x, 10)
	case uint64:
		e = number(e, strconv.FormatUint(x, 10))
	case json.Number:
		e = number(e, string(x))
	case float64:
		e.kind, e.value, e.text = Float, math.Float64bits(x), floatText(x)
	case string:
		e.text = x
	case []any:
		e.kind, e.value = List, uint64(len(x))
		for i, item := range x {
			var err error
			if entries, err = flattenValue(entries, key+"."+strconv.Itoa(i), item); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		e.kind, e.value = Map, uint64(len(x))
		var err error
		if entries, err = flatten(entries, key+".", x); err != nil {
			return nil, err
		}
	}
	for _, s := range []string{e.key, e.text} {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("pullet: %q: no text of UTF-8 without NUL", e.key)
		}
	}
	if len(e.key) >= 1<<24 {
		return nil, errors.New("pullet: a key has 16 MiB or more")
	}
	return append(entries, e), nil
}

// number is a number as it is written: an int64 if it can be, else a float64.
func number(e entry, text string) entry {
	e.text = text
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		e.kind, e.value = Int, uint64(n)
		return e
	}
	f, _ := strconv.ParseFloat(text, 64)
	e.kind, e.value = Float, math.Float64bits(f)
	return e
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// An entry is what becomes a record.
type entry struct {
	key   string
	kind  Type
	value uint64
	text  string
}

func pad(b []byte, to int) []byte {
	for len(b)%to != 0 {
		b = append(b, 0)
	}
	return b
}

// build makes an image, as the agent does; a key that xxh3 does not take is not in its index.
func build(generation uint64, version string, entries ...entry) []byte {
	le := binary.LittleEndian
	sort.Slice(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
	slots := 2
	for slots < 2*len(entries) || slots <= len(entries) {
		slots *= 2
	}
	b := make([]byte, headerSize+8*slots)
	order := len(b)
	b = pad(append(b, make([]byte, 4*len(entries))...), 8)
	records := len(b)
	for i, e := range entries {
		le.PutUint32(b[order+4*i:], uint32(len(b)))
		if len(e.key) <= hashedKey {
			hash := xxh3(e.key)
			slot := int(hash) & (slots - 1)
			for le.Uint32(b[headerSize+8*slot+4:]) != 0 {
				slot = (slot + 1) & (slots - 1)
			}
			le.PutUint64(b[headerSize+8*slot:], hash>>32|uint64(len(b))<<32)
		}
		b = le.AppendUint64(b, e.value)
		b = le.AppendUint32(b, uint32(len(e.text)))
		b = le.AppendUint32(b, uint32(len(e.key))|uint32(e.kind)<<24)
		b = append(append(append(append(b, e.key...), 0), e.text...), 0)
		b = pad(b, 8)
	}
	at := len(b)
	b = pad(append(append(b, version...), 0), 8)
	copy(b, imageMagic)
	le.PutUint64(b[16:], uint64(len(b)))
	le.PutUint64(b[24:], generation)
	for i, n := range []int{len(entries), slots, headerSize, order, records, at} {
		le.PutUint32(b[40+4*i:], uint32(n))
	}
	return seal(b)
}

func seal(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[8:], xxh64(b[16:]))
	return b
}
