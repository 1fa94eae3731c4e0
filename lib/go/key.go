package pullet

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A Key is a key of one Config that is read often: it is looked up, and its text copied, once a
// version. It moves with its Config, and is as if there were no such key once that is closed. All
// methods may be called by any number of goroutines at once.
type Key struct {
	c     *Config
	name  string
	known atomic.Pointer[known]
}

// known is what a key has in one image: a copy, for it does not keep the image mapped.
type known struct {
	serial uint64 // of the image
	ok     bool
	raw    uint64 // the 64 bits of the value
	value  Value
}

// Key names a key that is read often; it need not be there.
func (c *Config) Key(key string) *Key { return &Key{c: c, name: key} }

// Name is the key.
func (k *Key) Name() string { return k.name }

func (k *Key) find() *known {
	if f := k.known.Load(); f != nil && f.serial == k.c.current.Load().serial {
		return f
	}
	return k.findAgain()
}

func (k *Key) findAgain() *known {
	img := k.c.current.Load()
	f := &known{serial: img.serial}
	if o := img.find(k.name); o != 0 {
		f.raw = img.value(o)
		f.value, f.ok = img.copy(o), true
	}
	runtime.KeepAlive(img)
	k.known.Store(f)
	return f
}

// Get returns the value; false when there is no such key.
func (k *Key) Get() (Value, bool) {
	f := k.find()
	return f.value, f.ok
}

// String returns what Config.String does, and so do the others.
func (k *Key) String(fallback string) string {
	if f := k.find(); f.value.Type >= Bool && f.value.Type <= String {
		return f.value.Text
	}
	return fallback
}

// Int returns what Config.Int does.
func (k *Key) Int(fallback int64) int64 {
	f := k.find()
	return toInt(f.value.Type, f.raw, f.value.Text, fallback)
}

// Float returns what Config.Float does.
func (k *Key) Float(fallback float64) float64 {
	f := k.find()
	return toFloat(f.value.Type, f.raw, f.value.Text, fallback)
}

// Bool returns what Config.Bool does.
func (k *Key) Bool(fallback bool) bool {
	f := k.find()
	return toBool(f.value.Type, f.raw, f.value.Text, fallback)
}

// Duration returns what Config.Duration does.
func (k *Key) Duration(fallback time.Duration) time.Duration {
	f := k.find()
	return toDuration(f.value.Type, f.value.Text, fallback)
}

// Size returns what Config.Size does.
func (k *Key) Size(fallback int64) int64 {
	f := k.find()
	return toSize(f.value.Type, f.raw, f.value.Text, fallback)
}
