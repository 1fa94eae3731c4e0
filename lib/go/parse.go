package pullet

import (
	"math"
	"strconv"
	"strings"
	"time"
)

type unit struct {
	name   string
	factor int64
}

var durations = [...]unit{
	{"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1},
}

// parseDuration reads integers with units, the greatest first and each once; the sign in front is that
// of all. False when the sum exceeds an int64.
func parseDuration(text string) (int64, bool) {
	const digits = "0123456789"
	sign, units, sum := "", durations[:], int64(0)
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = text[:1], text[1:]
	}
	for {
		end := len(text) - len(strings.TrimLeft(text, digits))
		n, err := strconv.ParseInt(sign+text[:end], 10, 64)
		if end == 0 || err != nil {
			return 0, false
		}
		text = text[end:]
		name := text
		if next := strings.IndexAny(text, digits); next >= 0 {
			name = text[:next]
		}
		for len(units) > 0 && units[0].name != name {
			units = units[1:]
		}
		if len(units) == 0 || n > math.MaxInt64/units[0].factor || n < math.MinInt64/units[0].factor {
			return 0, false
		}
		n *= units[0].factor
		if n > 0 && sum > math.MaxInt64-n || n < 0 && sum < math.MinInt64-n {
			return 0, false
		}
		sum += n
		if text = text[len(name):]; text == "" {
			return sum, true
		}
		units = units[1:]
	}
}

var sizes = [...]unit{
	{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
}

// parseUnits reads an integer and a unit, whole; false when the product exceeds an int64.
func parseUnits(text string, units []unit) (int64, bool) {
	name := strings.TrimLeft(text, "+-0123456789")
	n, err := strconv.ParseInt(text[:len(text)-len(name)], 10, 64)
	if err != nil {
		return 0, false
	}
	for _, u := range units {
		if u.name == name {
			return n * u.factor, n <= math.MaxInt64/u.factor && n >= math.MinInt64/u.factor
		}
	}
	return 0, false
}

// parseFloat reads a decimal number, whole: no infinity, NaN, hexadecimal or underscore.
func parseFloat(text string) (f float64, ok bool) {
	if strings.Trim(text, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// What the getters make of a value: of its type, its 64 bits, its text as it was written. A text is
// bytes of an image, or a copy of them.

func isScalar(kind Type) bool { return kind >= Bool && kind <= String }

func asInt[T string | []byte](kind Type, value uint64, text T) (int64, bool) {
	switch kind {
	case Int:
		return int64(value), true
	case String:
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	return 0, false
}

func asFloat[T string | []byte](kind Type, value uint64, text T) (float64, bool) {
	switch kind {
	case Int:
		return float64(int64(value)), true
	case Float:
		return math.Float64frombits(value), true
	case String:
		return parseFloat(string(text))
	}
	return 0, false
}

func asBool[T string | []byte](kind Type, value uint64, text T) (b, ok bool) {
	switch {
	case kind == Bool:
		return value != 0, true
	case kind == String:
		return string(text) == "true", string(text) == "true" || string(text) == "false"
	}
	return false, false
}

func asDuration[T string | []byte](kind Type, text T) (time.Duration, bool) {
	if kind != String {
		return 0, false
	}
	ms, ok := parseDuration(string(text))
	if limit := math.MaxInt64 / int64(time.Millisecond); !ok || ms > limit || ms < -limit {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

func asSize[T string | []byte](kind Type, value uint64, text T) (int64, bool) {
	switch kind {
	case Int:
		return int64(value), true
	case String:
		return parseUnits(string(text), sizes[:])
	}
	return 0, false
}

func toInt[T string | []byte](kind Type, value uint64, text T, fallback int64) int64 {
	if v, ok := asInt(kind, value, text); ok {
		return v
	}
	return fallback
}

func toFloat[T string | []byte](kind Type, value uint64, text T, fallback float64) float64 {
	if v, ok := asFloat(kind, value, text); ok {
		return v
	}
	return fallback
}

func toBool[T string | []byte](kind Type, value uint64, text T, fallback bool) bool {
	if v, ok := asBool(kind, value, text); ok {
		return v
	}
	return fallback
}

func toDuration[T string | []byte](kind Type, text T, fallback time.Duration) time.Duration {
	if v, ok := asDuration(kind, text); ok {
		return v
	}
	return fallback
}

func toSize[T string | []byte](kind Type, value uint64, text T, fallback int64) int64 {
	if v, ok := asSize(kind, value, text); ok {
		return v
	}
	return fallback
}
