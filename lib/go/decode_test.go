package pullet

import (
	"errors"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

type level string

type common struct {
	Name string
}

type database struct {
	Host string
	Port uint16 `pullet:"port,required"`
}

type settings struct {
	common
	Common2  `pullet:"-"`
	Listen   string `pullet:"listen,required"`
	MaxConns int
	HTTPPort int
	Timeout  time.Duration
	Body     int64 `pullet:"max-body,size"`
	Ratio    float32
	Debug    bool
	Limit    *int
	None     *int
	DB       database
	Standby  *database
	Hosts    []string
	Pools    []database
	Weights  map[level]float64
	Any      any
	Raw      Value
	Addr     netip.Addr
	Level    level
	private  int
}

// Common2 is embedded, and left out.
type Common2 struct{ Secret string }

const document = `{"name": "n", "secret": "s", "listen": ":80", "max_conns": "17", "httpPort": 8, "timeout": "10s",
 "max-body": "64KiB", "ratio": 0.5, "debug": "true", "limit": 3, "none": null, "db": {"host": "h", "port": 5432},
 "hosts": ["a", "b"], "pools": [{"host": "p", "port": 1}], "weights": {"x.y": 1, "z": 0.25}, "any": {"l": [1, 2.5, null, true, "t"]},
 "raw": 1.10, "addr": "::1", "level": "warn"}`

func newFake(t testing.TB, doc any) *Fake {
	t.Helper()
	f, err := NewFake(doc)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDecode(t *testing.T) {
	f := newFake(t, document)
	one := 1
	got := settings{None: &one, private: 7, MaxConns: 5}
	if err := f.Decode(&got); err != nil {
		t.Fatal(err)
	}
	three := 3
	want := settings{Listen: ":80", MaxConns: 17, HTTPPort: 8, Timeout: 10 * time.Second, Body: 64 << 10, Ratio: 0.5,
		Debug: true, Limit: &three, DB: database{"h", 5432}, Hosts: []string{"a", "b"}, Pools: []database{{"p", 1}},
		Weights: map[level]float64{"x.y": 1, "z": 0.25},
		Any:     map[string]any{"l": []any{int64(1), 2.5, nil, true, "t"}},
		Raw:     Value{Type: Float, Text: "1.10", Float: 1.1}, Addr: netip.MustParseAddr("::1"), Level: "warn", private: 7}
	want.Name = "n"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
	if one != 1 {
		t.Error("what a pointer pointed at was changed")
	}
	var db database
	if err := f.Decode(&db, Below("db")); err != nil || db != want.DB {
		t.Error(err, db)
	}
	if err := f.Decode(&db, Below("dbb")); err == nil || !strings.HasSuffix(err.Error(), ": dbb is missing") {
		t.Error(err)
	}
	var pool []database
	if err := f.Decode(&pool, Below("pools")); err == nil {
		t.Error("a slice was taken")
	}
	var all map[string]any
	if err := f.Decode(&all); err != nil || len(all) != 19 {
		t.Error(err, len(all))
	}
	err := f.Decode(&got, Strict)
	var d *DecodeError
	if !errors.As(err, &d) || !reflect.DeepEqual(d.Problems, []Problem{{"secret", "is not known"}}) {
		t.Error(err)
	}
	if err := f.Decode(got); err == nil || !strings.Contains(err.Error(), "a pointer to a struct or a map, not pullet.settings") {
		t.Error(err)
	}
}

// TestDecodeErrors: all of them are told, with key, file and generation, without values; nothing is
// changed; defaults stay.
func TestDecodeErrors(t *testing.T) {
	f := newFake(t, map[string]any{"debug": "secret1", "small": 300, "minus": -1, "wait": "5", "size": "1kB", "list": "secret2",
		"items": []any{1, "x", nil}, "addr": "secret3", "map": 1, "text": map[string]any{}, "db": map[string]any{"port": nil}})
	type target struct {
		Debug  bool
		Small  int8
		Minus  uint
		Wait   time.Duration
		Size   int `pullet:",size"`
		List   []int
		Items  []int
		Addr   netip.Addr
		Map    struct{}
		Text   string
		DB     database
		Hidden struct {
			Must string `pullet:",required"`
		}
		Gone *database
		Fn   func() `pullet:"map"`
		Bad  int    `pullet:",oops"`
	}
	got := target{Debug: true, Small: 5}
	err := f.Decode(&got)
	var d *DecodeError
	if !errors.As(err, &d) || d.Generation != 1 || d.Path != "(fake)" || d.Version != "fake-1" {
		t.Fatal(err)
	}
	want := []Problem{
		{"debug", "must be true or false, but is a text of another form"},
		{"small", "must be an integer such as 17 that fits int8, but is an integer that does not fit"},
		{"minus", "must be an integer such as 17 that fits uint, but is an integer that does not fit"},
		{"wait", `must be a duration such as 10s or 1h30m, but is a text of another form`},
		{"size", `must be a size such as 64KiB that fits int, but is a text of another form`},
		{"list", "must be a list, but is a text"},
		{"items.1", "must be an integer such as 17 that fits int, but is a text of another form"},
		{"addr", "must be a netip.Addr, but is a text of another form"},
		{"map", "must be a mapping, but is an integer"},
		{"text", "must be a text, but is a mapping"},
		{"db.port", "is null"},
		{"hidden.must", "is missing"},
		{"map", "has a field of type func(), which Decode cannot fill"},
		{"Bad", `has a tag with an unknown option, "oops"`},
	}
	for i, p := range d.Problems {
		if i >= len(want) || p != want[i] {
			t.Errorf("%q", p)
		}
	}
	if len(d.Problems) != len(want) {
		t.Errorf("%d problems", len(d.Problems))
	}
	if text := err.Error(); !strings.HasPrefix(text, "pullet: (fake), generation 1: debug must be") ||
		!strings.HasSuffix(text, "; and 6 more") || strings.Contains(text, "secret") {
		t.Error(text)
	}
	if !got.Debug || got.Small != 5 || got.Gone != nil {
		t.Errorf("%+v", got)
	}
	empty := target{Debug: true, Items: []int{1}}
	f = newFake(t, `{"hidden": {"must": "x"}, "db": {"port": 1}}`)
	if err := f.Decode(&empty); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Error(err)
	}
}

func TestStrictNamesWhatWasMeant(t *testing.T) {
	var s struct{ DB struct{ Host, Port string } }
	err := newFake(t, `{"db": {"hots": 1, "prot": 2, "port": 3, "other": 4}}`).Decode(&s, Strict)
	var d *DecodeError
	if !errors.As(err, &d) || !reflect.DeepEqual(d.Problems, []Problem{
		{"db.hots", "is not known: did you mean db.host?"}, {"db.other", "is not known"}, {"db.prot", "is not known"}}) {
		t.Error(err)
	}
}

func TestWhatIsRequiredOfAStructThatIsMissing(t *testing.T) {
	var s struct {
		Data struct {
			Host string `pullet:",required"`
		}
		Any struct{ Port int } `pullet:",required"`
	}
	err := newFake(t, `{"daat": {}}`).Decode(&s)
	var d *DecodeError
	if !errors.As(err, &d) || !reflect.DeepEqual(d.Problems, []Problem{{"data.host", "is missing: did you mean daat?"}, {"any", "is missing"}}) {
		t.Error(err)
	}
}

func TestOwnAgentIsNamed(t *testing.T) {
	run := t.TempDir()
	t.Setenv("PULLET_RUNTIME_DIR", "")
	t.Setenv("XDG_RUNTIME_DIR", run)
	if os.MkdirAll(run+"/pullet", 0o755) != nil || os.WriteFile(run+"/pullet/own.snap", nil, 0o644) != nil {
		t.Fatal("no directory")
	}
	c, err := Open("own", WaitFirst)
	if err != nil {
		t.Skip(err)
	}
	var s struct {
		Must int `pullet:",required"`
	}
	err = c.Decode(&s)
	own := strings.Contains(err.Error(), "your own agent publishes it in "+run+"/pullet: set PULLET_RUNTIME_DIR="+run+"/pullet")
	if !strings.Contains(err.Error(), "nothing is published: ") || own != (os.Geteuid() != 0) { // root has none
		t.Error(err)
	}
}

func TestKeyNames(t *testing.T) {
	for field, want := range map[string][2]string{"Host": {"host", "host"}, "MaxConns": {"max_conns", "maxConns"},
		"DBHost": {"db_host", "dbHost"}, "UserID": {"user_id", "userID"}, "HTTP": {"http", "http"}, "A": {"a", "a"}} {
		if snake, camel := keyNames(field); snake != want[0] || camel != want[1] {
			t.Error(field, snake, camel)
		}
	}
	for _, key := range []string{"a", "a.b", `a\.b.c`, `a\\.b`, "", ".", "a."} {
		path := segments(key)
		joined := ""
		for i, s := range path {
			if i == 0 {
				joined = escapes.Replace(s)
			} else {
				joined = joined + "." + escapes.Replace(s)
			}
		}
		if joined != key {
			t.Errorf("%q: %q is %q", key, path, joined)
		}
	}
}
