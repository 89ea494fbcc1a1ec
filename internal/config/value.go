package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is one setting as text; pflag's Value has the same shape.
type Value interface {
	Set(text string) error
	String() string
	Type() string
}

// field is a Value over a field of a Config.
type field[T any] struct {
	to     *T
	kind   string
	parse  func(string) (T, error)
	format func(T) string
}

func (f field[T]) Set(text string) error {
	v, err := f.parse(text)
	if err == nil {
		*f.to = v
	}
	return err
}

func (f field[T]) String() string { return f.format(*f.to) }
func (f field[T]) Type() string   { return f.kind }

func text(to *string, kind string) Value {
	return field[string]{to, kind, func(s string) (string, error) { return strings.TrimSpace(s), nil }, func(s string) string { return s }}
}

func oneOf(to *string, words ...string) Value {
	return field[string]{to, strings.Join(words, "|"), func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("%q is not one of %s", s, strings.Join(words, ", "))
		}
		return s, nil
	}, func(s string) string { return s }}
}

func yesNo(to *bool) Value {
	return field[bool]{to, "bool", func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, fmt.Errorf("%q is neither true nor false", s)
		}
		return v, nil
	}, strconv.FormatBool}
}

func count(to *int, lo, hi int) Value {
	return field[int]{to, "int", func(s string) (int, error) {
		n, err := strconv.Atoi(strings.ReplaceAll(s, "_", ""))
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		if n < lo || n > hi {
			return 0, fmt.Errorf("%d is not within %d and %d", n, lo, hi)
		}
		return n, nil
	}, strconv.Itoa}
}

func share(to *float64) Value {
	return field[float64]{to, "share", func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", s)
		}
		if !(v > 0 && v <= 1) {
			return 0, fmt.Errorf("%s is not a share: above 0, at most 1", s)
		}
		return v, nil
	}, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }}
}

func duration(to *time.Duration) Value {
	return field[time.Duration]{to, "duration", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration such as 30s or 2m", s)
		}
		if d <= 0 {
			return 0, fmt.Errorf("%s is not above zero", s)
		}
		return d, nil
	}, formatDuration}
}

// formatDuration writes 10m0s as 10m.
func formatDuration(d time.Duration) string {
	s := d.String()
	if whole, ok := strings.CutSuffix(s, "h0m0s"); ok {
		return whole + "h"
	}
	if whole, ok := strings.CutSuffix(s, "m0s"); ok {
		return whole + "m"
	}
	return s
}

// period is a long duration that may be written in days; 0 is none.
func period(to *time.Duration) Value {
	return field[time.Duration]{to, "period", parsePeriod, formatPeriod}
}

// somePeriod is one that is not 0.
func somePeriod(to *time.Duration) Value {
	return field[time.Duration]{to, "period", func(s string) (time.Duration, error) {
		d, err := parsePeriod(s)
		if err == nil && d == 0 {
			return 0, fmt.Errorf("%s is not above zero", s)
		}
		return d, err
	}, formatPeriod}
}

func parsePeriod(s string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.ParseUint(number, 10, 16); err == nil {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a period such as 90d or 12h", s)
	}
	return d, nil
}

func formatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return formatDuration(d)
}

var units = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

func size(to *int64) Value {
	return field[int64]{to, "size", parseSize, formatSize}
}

// Size is a size in bytes for a command's own flag; it may be 0.
func Size(to *int64) Value { return sizeOrNone(to) }

// sizeOrNone is a size that may be 0.
func sizeOrNone(to *int64) Value {
	return field[int64]{to, "size", func(s string) (int64, error) {
		if n := strings.TrimRight(s, "BKiMG"); n == "0" {
			return 0, nil
		}
		return parseSize(s)
	}, formatSize}
}

func rate(to *float64) Value {
	return field[float64]{to, "rate", func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0 && v <= 1e9) {
			return 0, fmt.Errorf("%q is not a number of 0 or more", s)
		}
		return v, nil
	}, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }}
}

func parseSize(s string) (int64, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n <= 0 || n > (1<<62)/u.n {
			break
		}
		return n * u.n, nil
	}
	return 0, fmt.Errorf("%q is not a size such as 8MiB", s)
}

func formatSize(n int64) string {
	for _, u := range units {
		if n >= u.n && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// list is separated by commas; each entry goes through check.
func list(to *[]string, kind string, check func(string) error) Value {
	return field[[]string]{to, kind, func(s string) ([]string, error) {
		var out []string
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if err := check(part); err != nil {
				return nil, err
			}
			out = append(out, part)
		}
		return out, nil
	}, func(v []string) string { return strings.Join(v, ",") }}
}

func checkKey(entry string) error {
	// The entry holds a secret: it is not repeated.
	_, err := staticKey(entry)
	return err
}

// checkTimeout holds an entry to a known form; whether the operation is known,
// the engines tell.
func checkTimeout(entry string) error {
	op, text, ok := strings.Cut(entry, "=")
	if d, err := time.ParseDuration(text); !ok || op == "" || err != nil || d <= 0 {
		return fmt.Errorf("%q is not OPERATION=DURATION, such as assemble=2s", entry)
	}
	return nil
}
