package pullet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A step of tests/golden/cases.json, which says what it means.
type step struct {
	Do, Call     string
	Number       int
	Flip, Cut    *int
	File         string
	Key, Prefix  string
	Wait_first   bool
	Strict       bool
	Is           any
	Error        string
	Keys, Says   []string
	Magic        *uint64
	Generation   *uint64
	Futex        *uint64
	Withdrawn    *uint64
	Confirmed_ms *uint64
	Stale_ms     *uint64
}

type caseRun struct {
	*testing.T
	name, dir string
	c         *Config
}

// TestCases: what every language answers alike; the images are made by tests/golden/cases.py, and
// $PULLET_CASES names their directory.
func TestCases(t *testing.T) {
	var all struct {
		Cases []struct {
			Name  string
			Steps []step
		}
	}
	readJSON(t, "cases.json", &all)
	if len(all.Cases) < 20 {
		t.Fatalf("%d cases", len(all.Cases))
	}
	for _, one := range all.Cases {
		t.Run(one.Name, func(t *testing.T) {
			r := &caseRun{t, one.Name, t.TempDir(), nil}
			for i, s := range one.Steps {
				switch {
				case s.Do != "":
					r.do(s)
				case r.c == nil && s.Call != "open":
					t.Fatal("nothing is open")
				default:
					got, err := r.call(s)
					r.compare(fmt.Sprintf("step %d, %s %q%q", i, s.Call, s.Key, s.Prefix), s, got, err)
				}
			}
			_ = r.c.Close()
		})
	}
}

func (r *caseRun) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *caseRun) do(s step) {
	snap, gen := filepath.Join(r.dir, "web.snap"), filepath.Join(r.dir, "web.gen")
	switch s.Do {
	case "image":
		b, err := os.ReadFile(fmt.Sprintf("%s/%s-%d.snap", os.Getenv("PULLET_CASES"), r.name, s.Number))
		r.check(err)
		if s.Flip != nil {
			b[(*s.Flip+len(b))%len(b)] ^= 1
		}
		if s.Cut != nil {
			b = b[:*s.Cut]
		}
		r.check(os.WriteFile(snap+".new", b, 0o644))
		r.check(os.Rename(snap+".new", snap))
	case "page":
		if _, err := os.Stat(gen); err != nil {
			r.check(os.WriteFile(gen, r.newPage(), 0o644))
		}
		r.writeFields(gen, s)
	case "new page":
		r.check(os.WriteFile(gen+".new", r.newPage(), 0o644))
		r.writeFields(gen+".new", s)
		r.check(os.Rename(gen+".new", gen))
	case "remove":
		r.check(os.Remove(filepath.Join(r.dir, s.File)))
	default:
		r.Fatalf("do %q", s.Do)
	}
}

func (r *caseRun) newPage() []byte {
	b := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(b, pageMagic)
	return b
}

func (r *caseRun) writeFields(path string, s step) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	r.check(err)
	defer f.Close()
	for _, field := range []struct {
		value    *uint64
		at, size int64
	}{{s.Magic, 0, 8}, {s.Generation, 8, 8}, {s.Futex, 16, 4}, {s.Withdrawn, 20, 4}, {s.Confirmed_ms, 24, 8}, {s.Stale_ms, 32, 8}} {
		if field.value != nil {
			b := binary.LittleEndian.AppendUint64(nil, *field.value)
			_, err := f.WriteAt(b[:field.size], field.at)
			r.check(err)
		}
	}
}

// getter is a getter's answer as a text, or nil; that of the config and of a Key are one.
func getter[T comparable](r *caseRun, s step, one, other T, get func(key string, fallback T) T, byKey func(fallback T) T, show func(T) string) any {
	a, b := get(s.Key, one), get(s.Key, other)
	if byKey(one) != a && a == a || byKey(other) != b && b == b {
		r.Errorf("%s: its Key answers something else", s.Key)
	}
	if a == one && b == other {
		return nil
	}
	return show(a)
}

func (r *caseRun) call(s step) (any, error) {
	c := r.c
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch s.Call {
	case "open":
		if c != nil {
			_ = c.Close()
		}
		var opts []Option
		if s.Wait_first {
			opts = append(opts, WaitFirst)
		}
		var err error
		if c, err = Open(filepath.Join(r.dir, "web.snap"), opts...); err == nil {
			r.c = c
		}
		return nil, err
	case "refresh":
		return first(c.Refresh())
	case "get":
		v, ok := c.Get(s.Key)
		if !ok {
			return nil, nil
		}
		return v, nil
	case "keys":
		keys := []any{}
		c.Each(s.Prefix, func(key string, v Value) bool {
			keys = append(keys, key)
			return true
		})
		return keys, nil
	case "tree":
		var tree map[string]any
		err := c.Decode(&tree)
		return tree, err
	case "decode":
		return r.decode(s.Strict)
	case "generation":
		return float64(c.Generation()), nil
	case "version":
		return c.Version(), nil
	case "count":
		return float64(c.Count()), nil
	case "stale":
		return c.Stale(), nil
	case "withdrawn":
		return c.Withdrawn(), nil
	case "age":
		age, ok := c.Age()
		if !ok {
			return nil, nil
		}
		return float64(age), nil
	case "string":
		return getter(r, s, "1", "2", c.String, c.Key(s.Key).String, func(v string) string { return v }), nil
	case "int":
		return getter(r, s, 11111, 22222, c.Int, c.Key(s.Key).Int, integer), nil
	case "size":
		return getter(r, s, 11111, 22222, c.Size, c.Key(s.Key).Size, integer), nil
	case "double":
		return getter(r, s, 11111, 22222, c.Float, c.Key(s.Key).Float, func(f float64) string { return fmt.Sprint(f) }), nil
	case "bool":
		return getter(r, s, true, false, c.Bool, c.Key(s.Key).Bool, strconv.FormatBool), nil
	case "duration_ms":
		return getter(r, s, 11111, 22222, c.Duration, c.Key(s.Key).Duration, func(d time.Duration) string { return integer(d.Milliseconds()) }), nil
	}
	r.Fatalf("call %q", s.Call)
	return nil, nil
}

func first(moved bool, err error) (any, error) { return moved, err }

type decoded struct {
	Name    string            `pullet:"name,required" json:"name"`
	Port    int64             `json:"port"`
	Ratio   float64           `json:"ratio"`
	Debug   bool              `json:"debug"`
	Timeout time.Duration     `json:"timeout"`
	Limit   int64             `pullet:",size" json:"limit"`
	Note    *string           `json:"note"`
	Tags    []string          `json:"tags"`
	Labels  map[string]string `json:"labels"`
	DB      decodedDB         `pullet:"db,required" json:"db"`
	Servers []decodedServer   `json:"servers"`
}

type decodedDB struct {
	Host string `pullet:",required" json:"host"`
	Port int64  `json:"port"`
}

type decodedServer struct {
	Host   string `pullet:",required" json:"host"`
	Weight int64  `json:"weight"`
}

func (s *decodedServer) SetDefaults() { s.Weight = 1 }

func (r *caseRun) decode(strict bool) (any, error) {
	into := decoded{Port: 80, Ratio: 0.5, Timeout: 5 * time.Second, Limit: 1 << 20, Tags: []string{}, Labels: map[string]string{},
		DB: decodedDB{Port: 5432}, Servers: []decodedServer{}}
	var options []DecodeOption
	if strict {
		options = append(options, Strict)
	}
	if err := r.c.Decode(&into, options...); err != nil {
		return nil, err
	}
	into.Timeout /= time.Millisecond
	b, err := json.Marshal(into)
	r.check(err)
	var plain any
	r.check(json.Unmarshal(b, &plain))
	return plain, nil
}

func (r *caseRun) compare(what string, s step, got any, err error) {
	if s.Error != "" {
		kinds := map[string]error{"not published": ErrNotPublished, "withdrawn": ErrWithdrawn, "damaged": ErrDamaged, "foreign": ErrForeign}
		var d *DecodeError
		if s.Error == "decode" {
			if !errors.As(err, &d) || d.Generation != r.c.Generation() {
				r.Fatalf("%s: %v", what, err)
			}
			var keys []string
			for _, p := range d.Problems {
				keys = append(keys, p.Key)
			}
			if s.Keys == nil {
				s.Keys = []string{s.Key}
			}
			if fmt.Sprint(keys) != fmt.Sprint(s.Keys) {
				r.Errorf("%s: %v", what, err)
			}
			for _, says := range s.Says {
				if !strings.Contains(err.Error(), says) {
					r.Errorf("%s: %v, want %s", what, err, says)
				}
			}
		} else if !errors.Is(err, kinds[s.Error]) || errors.Is(err, ErrWithdrawn) != (s.Error == "withdrawn") {
			r.Errorf("%s: %v, want %s", what, err, s.Error)
		}
		return
	}
	if err != nil {
		r.Errorf("%s: %v", what, err)
		return
	}
	want := s.Is
	switch v := got.(type) {
	case Value:
		w := want.([]any)
		value := strings.Replace(w[2].(string), "inf", "Inf", 1)
		if v.Type.String() != w[0] || v.Text != w[1] || !sameValue(v, value) {
			r.Errorf("%s: %+v, want %v", what, v, want)
		}
		return
	case string:
		if s.Call == "double" && want != nil {
			a, _ := strconv.ParseFloat(v, 64)
			b, err := strconv.ParseFloat(want.(string), 64)
			if err != nil || math.Float64bits(a) != math.Float64bits(b) {
				r.Errorf("%s: %s, want %s", what, v, want)
			}
			return
		}
	case map[string]any:
		b, err := json.Marshal(v)
		r.check(err)
		got = nil
		r.check(json.Unmarshal(b, &got))
	}
	if s.Call == "duration_ms" && want != nil {
		if ms, _ := strconv.ParseInt(want.(string), 10, 64); ms > math.MaxInt64/int64(time.Millisecond) {
			want = nil // no time.Duration
		}
	}
	if s.Call != "open" && !reflect.DeepEqual(got, want) {
		r.Errorf("%s: %v, want %v", what, got, want)
	}
}
