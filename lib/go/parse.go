package pullet

import (
	"math"
	"strconv"
	"strings"
)

type unit struct {
	name   string
	factor int64
}

var durations = [...]unit{
	{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000},
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
