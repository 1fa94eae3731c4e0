// Package pullet reads configuration values from a snapshot that the pullet agent keeps up to date.
//
//	c, err := pullet.Open("web")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	host := c.String("db.host", "localhost")
//	...
//	c.Refresh() // now and then: is there a newer version?
//
// Decode fills a struct, Wait and Changed follow the config, NewFake is for an application's tests.
// A Config reads one version, whole, until Refresh or Wait moves it to a newer one. A lookup takes
// no lock and makes no system call. The agent's death disturbs nobody. The layout of the files is
// lib/FORMAT.md; this package needs nothing else, and Linux.
package pullet

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Errors to be looked for with errors.Is. A file that may not be read is fs.ErrPermission, what is
// not a name fs.ErrInvalid, a Config that has been closed fs.ErrClosed.
var (
	ErrNotPublished = errors.New("nothing is published")
	ErrDamaged      = errors.New("the file is damaged")
	ErrForeign      = errors.New("not a file that this library knows")
	// ErrWithdrawn: the agent publishes this config no more. It is an ErrNotPublished, too.
	ErrWithdrawn error = withdrawn{}
)

type withdrawn struct{}

func (withdrawn) Error() string        { return "withdrawn" }
func (withdrawn) Is(target error) bool { return target == ErrNotPublished }

// An Error says which file, what kind of error (Err, one of the variables) and what about it.
type Error struct {
	Path   string
	Detail string
	Err    error
}

func (e *Error) Error() string { return "pullet: " + e.Path + ": " + e.Err.Error() + ": " + e.Detail }

// Unwrap returns the kind of the error.
func (e *Error) Unwrap() error { return e.Err }

// Type is the type of a value, as it was written in the configuration.
type Type uint8

// The types of values.
const (
	Null Type = iota
	Bool
	Int
	Float
	String
	List
	Map
)

var typeNames = [...]string{"null", "bool", "int", "double", "string", "list", "map"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// A Value is a copy: it stays good after the Config has moved on or was closed.
type Value struct {
	Type  Type
	Text  string  // as it was written; empty for null, list and map
	Bool  bool    // of a Bool
	Int   int64   // of an Int
	Float float64 // of a Float
	Count uint64  // of a List or Map: its items or members
}

// raw is the 64 bits of the value.
func (v Value) raw() uint64 {
	switch v.Type {
	case Bool:
		if v.Bool {
			return 1
		}
	case Int:
		return uint64(v.Int)
	case Float:
		return math.Float64bits(v.Float)
	}
	return v.Count
}

// A Reader is what an application reads a configuration through: a *Config, or a *Fake in its tests.
type Reader interface {
	Get(key string) (Value, bool)
	String(key, fallback string) string
	Int(key string, fallback int64) int64
	Float(key string, fallback float64) float64
	Bool(key string, fallback bool) bool
	Duration(key string, fallback time.Duration) time.Duration
	Size(key string, fallback int64) int64
	Each(prefix string, fn func(key string, v Value) bool) bool
	Decode(into any, opts ...DecodeOption) error
	Key(key string) *Key
	Generation() uint64
	Version() string
	Count() int
	Age() (time.Duration, bool)
	Stale() bool
	Withdrawn() bool
	Refresh() (moved bool, err error)
	Wait(ctx context.Context) error
	Changed(ctx context.Context) <-chan struct{}
}

var (
	_ Reader = (*Config)(nil)
	_ Reader = (*Fake)(nil)
)

// An Option changes what Open does.
type Option uint

// WaitFirst lets Open succeed before the agent has published anything: everything is as if empty
// until Refresh or Wait finds something.
const WaitFirst Option = 1

// A Config is one version of one configuration, and moves to a newer one when told.
//
// All methods may be called by any number of goroutines at once. The version that is open is an
// immutable image behind an atomic pointer; a lookup loads the pointer and writes no shared memory.
// The garbage collector counts the references: an image that was replaced or closed is unmapped by
// a finalizer once no lookup uses it any more, that is at a later collection (the runtime makes one
// every two minutes at the latest, and the package one where such images have 32 MiB). A series of lookups may see two versions when another goroutine
// refreshes in between; use Each for a consistent set.
type Config struct {
	path    string
	from    source
	current atomic.Pointer[image] // never nil
	page    atomic.Pointer[page]  // nil until there is one
	seen    atomic.Uint32         // the page's futex when the image was last looked at
	gone    atomic.Bool           // withdrawn, and a Refresh has said so
	done    chan struct{}         // closed by Close
	mu      sync.Mutex            // who moves or closes
}

// nothing stands for an image where none is open.
var nothing = &image{}

// Open opens a config by its name (the file NAME.snap in /run/pullet or $PULLET_RUNTIME_DIR) or, if
// there is a '/' in it, the snapshot file at a path.
func Open(nameOrPath string, opts ...Option) (*Config, error) {
	path := nameOrPath
	if !strings.Contains(path, "/") {
		if !isName(path) {
			return nil, &Error{Path: strconv.Quote(path), Err: fs.ErrInvalid,
				Detail: "a name is 1 to 64 letters, digits, '.', '_' and '-', a letter or digit first"}
		}
		path = filepath.Join(runtimeDir(), path+".snap")
	}
	c := newConfig(path, newFiles(path))
	waitFirst := false
	for _, o := range opts {
		if o != WaitFirst {
			return nil, &Error{Path: path, Err: fs.ErrInvalid, Detail: "an unknown option"}
		}
		waitFirst = true
	}
	_, err := c.look()
	if err != nil && !(waitFirst && errors.Is(err, ErrNotPublished)) {
		return nil, explain(err, path, path != nameOrPath)
	}
	return c, nil
}

func newConfig(path string, from source) *Config {
	c := &Config{path: path, from: from, done: make(chan struct{})}
	c.current.Store(nothing)
	return c
}

func isName(name string) bool {
	for i := 0; i < len(name); i++ {
		b := name[i]
		alnum := b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
		if !alnum && (i == 0 || b != '.' && b != '_' && b != '-') {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 64
}

func (c *Config) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// upToDate is true when the control page says nothing new.
func (c *Config) upToDate() bool {
	p := c.page.Load()
	return p != nil && p.futex() == c.seen.Load()
}

// look takes the image at the path and tells whether that is another one; not by its number, for an
// agent that lost its state begins again. An image that is not good is not looked at again until the
// page says something new; one that was withdrawn is, each time. What a withdrawn config comes back
// with is another one, even if it is the same.
func (c *Config) look() (moved bool, err error) {
	have := c.page.Load()
	p := c.from.pageAfter(have)
	if p != have {
		defer func() {
			if c.page.Load() != p {
				p.unmap()
			}
		}()
	}
	var seen uint32
	if p != nil {
		seen = p.futex() // before the image, which is in place before it changes
	}
	old := c.current.Load()
	img, err := c.from.load(old)
	if errors.Is(err, ErrNotPublished) && p != nil && !p.withdrawn() {
		img, err = c.from.load(old) // it may have come back just now, and said so afterwards
	}
	if errors.Is(err, ErrNotPublished) && p != nil && p.withdrawn() {
		err = &Error{Path: c.path, Err: ErrWithdrawn, Detail: "the agent publishes this config" +
			" no more, for it was removed or says `snapshot: false`"}
	}
	wasGone := c.gone.Swap(old != nothing && errors.Is(err, ErrWithdrawn))
	if err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, ErrForeign) {
		c.page.Store(p)
		c.seen.Store(seen)
	} else if c.page.Load() == nil {
		c.page.Store(p) // to sleep on
	}
	if img == nil {
		return wasGone && err == nil, err
	}
	c.current.Store(img)
	old.retire()
	return wasGone || img.digest != old.digest, nil
}

// Refresh moves to the newest version and tells whether it did; when there is nothing newer it
// costs one atomic load. After an error the version that is open stays in use. ErrWithdrawn is
// returned each time until the config comes back: whether to go on with the last values is for the
// application to decide.
func (c *Config) Refresh() (bool, error) {
	if c.upToDate() {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false, fs.ErrClosed
	}
	if c.upToDate() {
		return false, nil
	}
	moved, err := c.look()
	if c.current.Load() == nothing && errors.Is(err, ErrNotPublished) {
		err = nil
	}
	return moved, err
}

// Close lets go of the version that is open; everything is as if empty from then on. A second Close
// does nothing. The error is always nil.
func (c *Config) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed() {
		close(c.done)
		c.current.Swap(nothing).retire()
		c.page.Store(nil)
	}
	return nil
}

// Get looks a key up: segments joined with '.', as in "servers.0.host"; a dot in a segment is
// written "\." and a backslash "\\".
func (c *Config) Get(key string) (Value, bool) {
	img := c.current.Load()
	o := img.find(key)
	var v Value
	if o != 0 {
		v = img.copy(o)
	}
	runtime.KeepAlive(img)
	return v, o != 0
}

// String returns any scalar but null as it was written, or the fallback.
func (c *Config) String(key, fallback string) string {
	img := c.current.Load()
	if o := img.find(key); o != 0 && img.kind(o) >= Bool && img.kind(o) <= String {
		fallback = string(img.text(o))
	}
	runtime.KeepAlive(img)
	return fallback
}

// Int returns an integer, or a string that is one, or the fallback.
func (c *Config) Int(key string, fallback int64) int64 {
	img := c.current.Load()
	if o := img.find(key); o != 0 {
		fallback = toInt(img.kind(o), img.value(o), img.text(o), fallback)
	}
	runtime.KeepAlive(img)
	return fallback
}

// Float returns a number, or a string that is one, or the fallback.
func (c *Config) Float(key string, fallback float64) float64 {
	img := c.current.Load()
	if o := img.find(key); o != 0 {
		fallback = toFloat(img.kind(o), img.value(o), img.text(o), fallback)
	}
	runtime.KeepAlive(img)
	return fallback
}

// Bool returns true or false, or a string that is one of these words, or the fallback.
func (c *Config) Bool(key string, fallback bool) bool {
	img := c.current.Load()
	if o := img.find(key); o != 0 {
		fallback = toBool(img.kind(o), img.value(o), img.text(o), fallback)
	}
	runtime.KeepAlive(img)
	return fallback
}

// Duration returns a string like "500ms", "10s", "1h30m" or "2d", or the fallback, also for one that
// no time.Duration can hold (292 years). (Not the syntax of time.ParseDuration: it has days, and no
// fractions.)
func (c *Config) Duration(key string, fallback time.Duration) time.Duration {
	img := c.current.Load()
	if o := img.find(key); o != 0 {
		fallback = toDuration(img.kind(o), img.text(o), fallback)
	}
	runtime.KeepAlive(img)
	return fallback
}

// Size returns a string like "64KiB" or "8MiB", or an integer, in bytes, or the fallback.
func (c *Config) Size(key string, fallback int64) int64 {
	img := c.current.Load()
	if o := img.find(key); o != 0 {
		fallback = toSize(img.kind(o), img.value(o), img.text(o), fallback)
	}
	runtime.KeepAlive(img)
	return fallback
}

// Each calls fn for each key that begins with prefix ("" = all), in the order of the keys' bytes,
// until fn returns false; it tells whether all were seen. All come from one version. fn may call
// any method of c.
func (c *Config) Each(prefix string, fn func(key string, v Value) bool) bool {
	img := c.current.Load()
	defer runtime.KeepAlive(img)
	return img.each(prefix, func(key string, o uint64) bool { return fn(key, img.copy(o)) })
}

// Generation is the generation that is open; 0 when nothing is yet.
func (c *Config) Generation() uint64 { return c.current.Load().generation }

// Version is the server's name for it (ETag or revision); "" when it gave none or nothing is open.
func (c *Config) Version() string { return c.current.Load().version }

// Count is the number of keys.
func (c *Config) Count() int { return c.current.Load().count }

// Age is the time since the server last confirmed the newest version, suspend included; false when
// it did not since the agent started, or there is no control page beside the snapshot.
func (c *Config) Age() (time.Duration, bool) {
	p := c.page.Load()
	if p == nil {
		return 0, false
	}
	confirmed := p.confirmed()
	now, ok := bootMillis()
	if !ok || confirmed == 0 {
		return 0, false
	}
	if now < confirmed {
		return 0, true
	}
	return time.Duration(now-confirmed) * time.Millisecond, true
}

// Withdrawn is true while the agent publishes this config no more, since it was removed or says
// `snapshot: false`; as it is now, without a Refresh.
func (c *Config) Withdrawn() bool {
	p := c.page.Load()
	return p != nil && p.withdrawn()
}

// Stale is true when the age is not known or has reached what the agent calls stale: longer than its
// longest delay between two pulls.
func (c *Config) Stale() bool {
	age, ok := c.Age()
	if !ok {
		return true
	}
	p := c.page.Load()
	if p == nil {
		return true
	}
	limit := p.staleAfter()
	return limit != 0 && uint64(age/time.Millisecond) >= limit
}
