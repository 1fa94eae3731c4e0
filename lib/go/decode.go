package pullet

import (
	"encoding"
	"fmt"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A DecodeOption changes what Decode does.
type DecodeOption struct {
	strict bool
	below  string
}

// Strict makes Decode complain about keys that the struct has no field for.
var Strict = DecodeOption{strict: true}

// Below decodes what is below a key, which must be there, instead of the whole document.
func Below(key string) DecodeOption { return DecodeOption{below: key} }

// A DecodeError lists all that Decode found wrong, and in what. It tells no values: they may be
// secret.
type DecodeError struct {
	Path       string
	Generation uint64
	Version    string
	Problems   []Problem
	empty      string // why nothing is open
}

// A Problem is what is wrong with one key: "must be an integer such as 17 that fits int, but is a list".
type Problem struct{ Key, Detail string }

func (e *DecodeError) Error() string {
	const most = 8
	if e.empty != "" {
		return "pullet: " + e.Path + ": " + e.empty
	}
	text := fmt.Sprintf("pullet: %s, generation %d", e.Path, e.Generation)
	for i, p := range e.Problems {
		if i == most {
			return text + fmt.Sprintf("; and %d more", len(e.Problems)-most)
		}
		text += map[bool]string{true: ": ", false: "; "}[i == 0] + p.Key + " " + p.Detail
	}
	return text
}

// Decode fills a struct (or a map) that into points at from the version that is open, as a whole: when
// it returns an error, a *DecodeError if it is the configuration's fault, nothing has changed. So
// what is filled in before is the default of each key that is missing or null.
//
//	cfg := struct {
//		Listen  string        `pullet:"listen,required"`
//		Timeout time.Duration // "timeout"
//		MaxBody int64         `pullet:",size"` // "max_body" or "maxBody": 64KiB
//		Limit   *int          // nil where there is none
//		DB      struct{ Host string; Port uint16 }
//		Hosts   []string
//		Weights map[string]float64
//	}{Timeout: 10 * time.Second}
//	err := c.Decode(&cfg)
//
// The tag is the key's own name, not its path; "-" leaves a field out. A field without one has its
// name in snake_case, or else in camelCase. Values are converted as the getters do: a text "17" is an
// integer too, a duration is a text such as "10s", and a size is so with the tag's option. An embedded
// struct's fields are their owner's. What has an UnmarshalText gets the text of a scalar; a field of
// type any gets nil, bool, int64, float64, string, []any or map[string]any, and a Value itself. Keys
// without a field are ignored but with Strict. A slice or map is replaced as a whole; see Defaulter for
// the defaults of what is in it.
func (c *Config) Decode(into any, opts ...DecodeOption) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() ||
		target.Elem().Kind() != reflect.Struct && target.Elem().Kind() != reflect.Map {
		return fmt.Errorf("pullet: Decode takes a pointer to a struct or a map, not %T", into)
	}
	var d decoder
	below := ""
	for _, o := range opts {
		d.strict = d.strict || o.strict
		below += o.below
	}
	img := c.current.Load()
	defer runtime.KeepAlive(img)
	filled := reflect.New(target.Elem().Type()).Elem()
	filled.Set(target.Elem())
	if tree := treeBelow(img, below); tree == nil || tree.v.Type == Null {
		d.nothing(tree, below)
	} else {
		d.value(tree, below, filled, fieldOptions{})
	}
	d.guess()
	if len(d.problems) > 0 {
		e := &DecodeError{Path: c.path, Generation: img.generation, Version: img.version, Problems: d.problems}
		if img == nothing && !c.isClosed() {
			e.empty = whyEmpty(c.path, c.Withdrawn())
		}
		return e
	}
	target.Elem().Set(filled)
	return nil
}

// A node is a value with what is below it.
type node struct {
	v     Value
	below map[string]*node
}

func (n *node) child(name string) *node {
	if n.below == nil {
		n.below = map[string]*node{}
	}
	if n.below[name] == nil {
		n.below[name] = &node{v: Value{Type: Map}}
	}
	return n.below[name]
}

// treeBelow is the tree of all that is below a key, "" = all; nil when there is no such key.
func treeBelow(img *image, below string) *node {
	var root *node
	prefix := below
	if below == "" {
		root = &node{v: Value{Type: Map}}
	} else {
		o := img.find(below)
		if o == 0 {
			return nil
		}
		root = &node{v: img.copy(o)}
		prefix += "."
	}
	img.each(prefix, func(key string, o uint64) bool {
		n := root
		for _, s := range segments(key[len(prefix):]) {
			n = n.child(s)
		}
		n.v = img.copy(o)
		return true
	})
	return root
}

// segments undoes join.
func segments(key string) []string {
	var all []string
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		switch {
		case key[i] == '\\' && i+1 < len(key):
			i++
			b.WriteByte(key[i])
		case key[i] == '.':
			all = append(all, b.String())
			b.Reset()
		default:
			b.WriteByte(key[i])
		}
	}
	return append(all, b.String())
}

var escapes = strings.NewReplacer(".", `\.`, `\`, `\\`)

func join(prefix, segment string) string {
	if prefix == "" {
		return escapes.Replace(segment)
	}
	return prefix + "." + escapes.Replace(segment)
}

type decoder struct {
	strict   bool
	problems []Problem
	gone     []missing
}

// A missing key is a problem that another key beside it may explain.
type missing struct {
	problem    int // that it is, or what is required in it
	in         *node
	below      string // the key of in
	name       string
	knownNames map[string]bool
}

// guess names what may have been meant by missing keys: what is beside them, and no field has.
func (d *decoder) guess() {
	for _, m := range d.gone {
		at := join(m.below, m.name)
		if m.problem >= len(d.problems) || d.problems[m.problem].Detail != "is missing" ||
			d.problems[m.problem].Key != at && !strings.HasPrefix(d.problems[m.problem].Key, at+".") {
			continue // it need not be there
		}
		for _, name := range m.in.names() {
			printable := strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
			if len(m.name) >= 3 && printable && !m.knownNames[name] && isNear(name, m.name) {
				d.problems[m.problem].Detail += ": did you mean " + join(m.below, name) + "?"
				break
			}
		}
	}
}

var joiners = strings.NewReplacer("-", "", "_", "")

// isNear: one character more, less or another one, or two swapped; not counting case, '-' and '_'.
func isNear(one, other string) bool {
	a, b := strings.ToLower(joiners.Replace(one)), strings.ToLower(joiners.Replace(other))
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

func (d *decoder) wrong(key, format string, args ...any) {
	d.problems = append(d.problems, Problem{key, fmt.Sprintf(format, args...)})
}

var inWords = [...]string{"null", "true or false", "an integer", "a number", "a text", "a list", "a mapping"}

// mismatch: a value is there, and not of the type.
func (d *decoder) mismatch(n *node, key, needed string) {
	is := inWords[n.v.Type]
	switch {
	case n.v.Type == String && needed != "a list" && needed != "a mapping":
		is += " of another form"
	case n.v.Type < String && strings.HasPrefix(needed, is), n.v.Type == Int && strings.HasPrefix(needed, "a size"):
		is += " that does not fit"
	}
	d.wrong(key, "must be %s, but is %s", needed, is)
}

type fieldOptions struct{ required, size bool }

var (
	durationType = reflect.TypeOf(time.Duration(0))
	valueType    = reflect.TypeOf(Value{})
)

// value fills v with what is at a key; n is nil where nothing is, which only a struct looks into.
func (d *decoder) value(n *node, key string, v reflect.Value, o fieldOptions) {
	if n == nil || n.v.Type == Null {
		d.missing(n, key, v, o)
		return
	}
	text, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case v.Type() == valueType:
		v.Set(reflect.ValueOf(n.v))
	case v.Type() == durationType:
		w, ok := asDuration(n.v.Type, n.v.Text)
		if !ok {
			d.mismatch(n, key, `a duration such as 10s or 1h30m`)
			return
		}
		v.SetInt(int64(w))
	case isText && v.Kind() != reflect.Pointer:
		if !isScalar(n.v.Type) || text.UnmarshalText([]byte(n.v.Text)) != nil {
			d.mismatch(n, key, "a "+v.Type().String())
		}
	default:
		d.kind(n, key, v, o)
	}
}

// missing leaves what is there; null makes nil of what can be.
func (d *decoder) missing(n *node, key string, v reflect.Value, o fieldOptions) {
	before := len(d.problems)
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if n != nil && !o.required {
			v.Set(reflect.Zero(v.Type()))
		}
	case reflect.Struct:
		if _, isText := v.Addr().Interface().(encoding.TextUnmarshaler); !isText && v.Type() != valueType {
			d.fields(&node{}, key, v, map[string]bool{}) // what it requires is missing
		}
	}
	if o.required && len(d.problems) == before {
		d.nothing(n, key)
	}
}

func (d *decoder) nothing(n *node, key string) {
	d.wrong(key, map[bool]string{true: "is missing", false: "is null"}[n == nil])
}

// kind fills v by its kind.
func (d *decoder) kind(n *node, key string, v reflect.Value, o fieldOptions) {
	switch v.Kind() {
	case reflect.Bool:
		b, ok := asBool(n.v.Type, n.v.raw(), n.v.Text)
		if !ok {
			d.mismatch(n, key, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.integer(n, key, v, o)
	case reflect.Float32, reflect.Float64:
		f, ok := asFloat(n.v.Type, n.v.raw(), n.v.Text)
		if !ok || v.OverflowFloat(f) && f-f == 0 {
			d.mismatch(n, key, "a number such as 0.5 that fits "+v.Type().String())
			return
		}
		v.SetFloat(f)
	case reflect.String:
		if !isScalar(n.v.Type) {
			d.mismatch(n, key, "a text")
			return
		}
		v.SetString(n.v.Text)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if v.IsNil() {
			setDefaults(p)
		} else {
			p.Elem().Set(v.Elem())
		}
		d.value(n, key, p.Elem(), o)
		v.Set(p)
	case reflect.Slice, reflect.Map, reflect.Struct, reflect.Interface:
		d.whole(n, key, v, o)
	default:
		d.wrong(key, "has a field of type %s, which Decode cannot fill", v.Type())
	}
}

func (d *decoder) integer(n *node, key string, v reflect.Value, o fieldOptions) {
	number, needed := asInt[string], "an integer such as 17"
	if o.size {
		number, needed = asSize[string], `a size such as 64KiB`
	}
	i, ok := number(n.v.Type, n.v.raw(), n.v.Text)
	if v.CanUint() {
		if !ok || i < 0 || v.OverflowUint(uint64(i)) {
			d.mismatch(n, key, needed+" that fits "+v.Type().String())
			return
		}
		v.SetUint(uint64(i))
		return
	}
	if !ok || v.OverflowInt(i) {
		d.mismatch(n, key, needed+" that fits "+v.Type().String())
		return
	}
	v.SetInt(i)
}

// A Defaulter fills in the defaults of what Decode makes itself: an item of a slice, a value of a map,
// what a nil pointer will point at.
type Defaulter interface{ SetDefaults() }

func setDefaults(p reflect.Value) {
	if d, ok := p.Interface().(Defaulter); ok {
		d.SetDefaults()
	}
}

// whole fills what has parts.
func (d *decoder) whole(n *node, key string, v reflect.Value, o fieldOptions) {
	t := v.Type()
	switch {
	case t.Kind() == reflect.Interface:
		if t.NumMethod() > 0 {
			d.wrong(key, "has a field of type %s, which Decode cannot fill", t)
		} else if x := n.any(); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	case t.Kind() == reflect.Struct:
		if n.v.Type != Map {
			d.mismatch(n, key, "a mapping")
			return
		}
		known := map[string]bool{}
		d.fields(n, key, v, known)
		d.unknown(n, key, known)
	case t.Kind() == reflect.Slice:
		if n.v.Type != List {
			d.mismatch(n, key, "a list")
			return
		}
		list := reflect.MakeSlice(t, len(n.below), len(n.below))
		for i := 0; i < list.Len(); i++ {
			name := strconv.Itoa(i)
			setDefaults(list.Index(i).Addr())
			d.value(n.below[name], join(key, name), list.Index(i), o)
		}
		v.Set(list)
	default:
		if n.v.Type != Map {
			d.mismatch(n, key, "a mapping")
			return
		}
		if t.Key().Kind() != reflect.String {
			d.wrong(key, "has a field of type %s, which Decode cannot fill", t)
			return
		}
		members := reflect.MakeMapWithSize(t, len(n.below))
		for _, name := range n.names() {
			member := reflect.New(t.Elem())
			setDefaults(member)
			d.value(n.below[name], join(key, name), member.Elem(), o)
			members.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), member.Elem())
		}
		v.Set(members)
	}
}

// fields fills a struct's fields, those of embedded ones too, and notes the names that it knows.
func (d *decoder) fields(n *node, key string, v reflect.Value, known map[string]bool) {
	for i := 0; i < v.NumField(); i++ {
		f := v.Type().Field(i)
		tag, tagged := f.Tag.Lookup("pullet")
		embedded := f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct
		if tag == "-" || !f.IsExported() && !embedded {
			continue
		}
		if embedded {
			d.fields(n, key, v.Field(i), known)
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		var o fieldOptions
		for _, option := range strings.Split(rest, ",") {
			switch option {
			case "":
			case "required":
				o.required = true
			case "size":
				o.size = true
			default:
				d.wrong(join(key, f.Name), "has a tag with an unknown option, %q", option)
			}
		}
		if name == "" {
			var other string
			if name, other = keyNames(f.Name); n.below[name] == nil && n.below[other] != nil {
				name = other
			}
		}
		known[name] = true
		if n.below[name] == nil {
			d.gone = append(d.gone, missing{len(d.problems), n, key, name, known})
		}
		d.value(n.below[name], join(key, name), v.Field(i), o)
	}
}

func (d *decoder) unknown(n *node, key string, known map[string]bool) {
	for _, name := range n.names() {
		if d.strict && !known[name] {
			d.wrong(join(key, name), "is not known%s", meant(n, key, name, known))
		}
	}
}

// meant is a field's name that is nearly this one, and not in the document.
func meant(n *node, key, name string, known map[string]bool) string {
	found := ""
	for one := range known {
		if len(name) >= 3 && n.below[one] == nil && isNear(one, name) && (found == "" || one < found) {
			found = one
		}
	}
	if found == "" {
		return ""
	}
	return ": did you mean " + join(key, found) + "?"
}

// names are those of all members, in order.
func (n *node) names() []string {
	all := make([]string, 0, len(n.below))
	for name := range n.below {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// any is the value with all that is below it, copied.
func (n *node) any() any {
	switch n.v.Type {
	case Bool:
		return n.v.Bool
	case Int:
		return n.v.Int
	case Float:
		return n.v.Float
	case String:
		return n.v.Text
	case List:
		list := make([]any, len(n.below))
		for i := range list {
			if item := n.below[strconv.Itoa(i)]; item != nil {
				list[i] = item.any()
			}
		}
		return list
	case Map:
		members := make(map[string]any, len(n.below))
		for name, member := range n.below {
			members[name] = member.any()
		}
		return members
	}
	return nil
}

// keyNames makes max_conns and maxConns of MaxConns, db_host and dbHost of DBHost.
func keyNames(field string) (snake, camel string) {
	var words []string
	runes, from := []rune(field), 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			words = append(words, string(runes[from:i]))
			from = i
		}
	}
	camel = strings.ToLower(words[0]) + strings.Join(words[1:], "")
	return strings.ToLower(strings.Join(words, "_")), camel
}
