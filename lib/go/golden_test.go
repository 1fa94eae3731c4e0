package pullet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const golden = "../../tests/golden"

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(golden, name))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(golden, from))
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sameValue compares with the value as the golden files write it.
func sameValue(v Value, want string) bool {
	switch v.Type {
	case Bool:
		return strconv.FormatBool(v.Bool) == want
	case Int:
		return strconv.FormatInt(v.Int, 10) == want
	case Float:
		f, err := strconv.ParseFloat(want, 64)
		return err == nil && (math.Float64bits(f) == math.Float64bits(v.Float) ||
			math.IsNaN(f) && math.IsNaN(v.Float))
	case List, Map:
		return strconv.FormatUint(v.Count, 10) == want
	}
	return want == ""
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"empty", "one", "types", "many", "collide"} {
		t.Run(name, func(t *testing.T) {
			var want struct {
				Generation uint64
				Version    string
				Keys       [][4]string
				Absent     []string
			}
			readJSON(t, name+".json", &want)
			c, err := Open(filepath.Join(golden, name+".snap"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Generation() != want.Generation || c.Version() != want.Version ||
				c.Count() != len(want.Keys) {
				t.Errorf("generation %d, version %q, %d keys", c.Generation(), c.Version(), c.Count())
			}
			for _, k := range want.Keys {
				v, ok := c.Get(k[0])
				if !ok || v.Type.String() != k[1] || v.Text != k[2] || !sameValue(v, k[3]) {
					t.Errorf("%q: %v %+v, want %q", k[0], ok, v, k[1:])
				}
			}
			for _, key := range want.Absent {
				if v, ok := c.Get(key); ok {
					t.Errorf("%q: %+v, want none", key, v)
				}
			}
			i := 0
			c.Each("", func(key string, v Value) bool {
				if i >= len(want.Keys) || key != want.Keys[i][0] || v.Text != want.Keys[i][2] {
					t.Errorf("place %d is %q", i, key)
				}
				i++
				return true
			})
			if i != len(want.Keys) {
				t.Errorf("%d keys listed", i)
			}
		})
	}
}

// answer is what a getter answers by the table: "-" is the fallback.
func answer[T any](t *testing.T, column string, fallback T, convert func(string) (T, error)) T {
	t.Helper()
	if column == "-" {
		return fallback
	}
	v, err := convert(column)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestGoldenValues: the golden table, and those that $PULLET_VALUES names, without their endings.
func TestGoldenValues(t *testing.T) {
	stems := strings.Split(filepath.Join(golden, "values")+":"+os.Getenv("PULLET_VALUES"), ":")
	for _, stem := range stems {
		if stem != "" {
			t.Run(filepath.Base(stem), func(t *testing.T) { goldenValues(t, stem) })
		}
	}
}

func goldenValues(t *testing.T, stem string) {
	b, err := os.ReadFile(stem + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(stem + ".snap")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	parse := func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
	rows := 0
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if line[0] == '#' {
			continue
		}
		rows++
		col := strings.Split(line, "\t")
		key := col[0]
		for n := int64(5); n <= 6; n++ { // two fallbacks
			str, err := url.PathUnescape(col[2])
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains("bool int double string", col[1]) {
				str = strconv.FormatInt(n, 10)
			}
			real, other, wait := float64(n)+0.5, n == 5, time.Duration(n)
			wantReal := answer(t, col[4], real, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
			ms := answer(t, col[6], math.MaxInt64, parse)
			wantWait := wait // also when a Duration cannot hold it
			if ms <= math.MaxInt64/1000000 && ms >= -math.MaxInt64/1000000 {
				wantWait = time.Duration(ms) * time.Millisecond
			}
			gotReal := c.Float(key, real)
			if c.String(key, strconv.FormatInt(n, 10)) != str ||
				c.Int(key, n) != answer(t, col[3], n, parse) ||
				math.Float64bits(gotReal) != math.Float64bits(wantReal) && !(math.IsNaN(gotReal) && math.IsNaN(wantReal)) ||
				c.Bool(key, other) != answer(t, col[5], other, strconv.ParseBool) ||
				c.Duration(key, wait) != wantWait ||
				c.Size(key, n) != answer(t, col[7], n, parse) {
				t.Errorf("%s: %q %d %g %v %d %d", line, c.String(key, ""), c.Int(key, n), gotReal,
					c.Bool(key, other), c.Duration(key, wait), c.Size(key, n))
			}
			k := c.Key(key)
			gotReal = k.Float(real)
			if k.String(strconv.FormatInt(n, 10)) != str || k.Int(n) != c.Int(key, n) ||
				math.Float64bits(gotReal) != math.Float64bits(c.Float(key, real)) ||
				k.Bool(other) != c.Bool(key, other) || k.Duration(wait) != wantWait || k.Size(n) != c.Size(key, n) {
				t.Errorf("%s, by its Key: %q %d %g %v %d %d", line, k.String(""), k.Int(n), gotReal, k.Bool(other), k.Duration(wait), k.Size(n))
			}
		}
	}
	if rows != c.Count()+1 { // one is absent
		t.Errorf("%d rows for %d keys", rows, c.Count())
	}
}

func TestGoldenPage(t *testing.T) {
	var want struct {
		Generation, Futex, Confirmed_ms, Stale_ms uint64
	}
	readJSON(t, "types.gen.json", &want)
	p := openPage(filepath.Join(golden, "types.gen"))
	if p == nil {
		t.Fatal("refused")
	}
	if p.generation() != want.Generation || uint64(p.futex()) != want.Futex ||
		p.confirmed() != want.Confirmed_ms || p.staleAfter() != want.Stale_ms {
		t.Errorf("generation %d futex %d confirmed %d stale %d", p.generation(), p.futex(),
			p.confirmed(), p.staleAfter())
	}
}

func TestGoldenBad(t *testing.T) {
	var all map[string]struct {
		Error *string
		Keys  []string
		Good  [][2]string
	}
	readJSON(t, "bad/bad.json", &all)
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.publish(1, "before", text("key", "kept"))
			c := a.open()
			copyFile(t, "bad/"+name+".snap", a.path+".tmp")
			a.check(os.Rename(a.path+".tmp", a.path))
			_, err := c.Refresh()
			if want.Keys == nil {
				kinds := map[string]error{"EBADMSG": ErrDamaged, "EPROTO": ErrForeign}
				damaged, foreign := errors.Is(err, ErrDamaged), errors.Is(err, ErrForeign)
				if !damaged && !foreign || want.Error != nil && !errors.Is(err, kinds[*want.Error]) {
					t.Errorf("error %v", err)
				}
				if c.String("key", "") != "kept" {
					t.Error("the version before is lost")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			listed := map[string]string{}
			c.Each("", func(key string, v Value) bool {
				listed[key] = v.Text
				return true
			})
			for _, key := range want.Keys {
				if v, ok := c.Get(key); ok {
					t.Errorf("%q found: %+v", key, v)
				}
				if _, ok := listed[key]; ok {
					t.Errorf("%q listed", key)
				}
			}
			for _, g := range want.Good {
				if v, ok := c.Get(g[0]); !ok || v.Text != g[1] || listed[g[0]] != g[1] {
					t.Errorf("%q: %v %+v, listed %q", g[0], ok, v, listed[g[0]])
				}
				all := c.Each(g[0], func(key string, v Value) bool { return key != g[0] })
				if all {
					t.Errorf("%q not listed by its own prefix", g[0])
				}
			}
		})
	}
}

// TestFlips: an image with any one byte changed is refused.
func TestFlips(t *testing.T) {
	a := newAgent(t)
	whole := build(7, "v7", text("a", "1"), text("b", "2"))
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x10
		a.write(b)
		if _, err := Open(a.path); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	for n := 0; n < len(whole); n++ {
		a.write(whole[:n])
		if _, err := Open(a.path); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
}

// read does all that a reader does with an image of any content behind a right digest.
func read(b []byte) (ok bool) {
	if len(b) < headerSize {
		return false
	}
	copy(b, imageMagic)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)))
	img := &image{data: seal(b)}
	if _, err := img.check(); err != nil {
		return false
	}
	c := &Config{}
	c.current.Store(img)
	c.Each("", func(key string, v Value) bool {
		c.Get(key)
		return true
	})
	c.Each("b", func(key string, v Value) bool { return true })
	c.Get("b")
	c.Get(strings.Repeat("b", hashedKey+1))
	return true
}

func seed() []byte {
	return build(7, "v7", text("a", "1"), text("b", "2"), entry{"c", Int, 3, "3"}, text("d", "4"))
}

// FuzzImage: go test -fuzz FuzzImage
func FuzzImage(f *testing.F) {
	f.Add(seed())
	f.Fuzz(func(t *testing.T, b []byte) { read(append([]byte(nil), b...)) })
}

// TestRandom is a short FuzzImage that repeats itself: some bytes and words of an image are changed.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	words := []uint32{0, 1, 7, 64, 128, 1 << 24, 1 << 31, 0xfffffff8, 0xffffffff}
	good := 0
	for i := 0; i < 200000; i++ {
		b := seed()
		for n := 1 + r.Intn(3); n > 0; n-- {
			if at := 24 + r.Intn(len(b)-27); r.Intn(2) == 0 {
				b[at] = byte(r.Intn(256))
			} else {
				binary.LittleEndian.PutUint32(b[at&^3:], words[r.Intn(len(words))])
			}
		}
		if read(b) {
			good++
		}
	}
	if good < 10000 || good > 190000 {
		t.Errorf("%d images were accepted: the test tests little", good)
	}
}
