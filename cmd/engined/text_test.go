package main

import (
	"strings"
	"testing"
	"time"
)

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestOneLineIsSafeToPrint(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"  two\n\tlines ":       "two lines",
		"\x1b[31mred\x1b[0m\a":  "red",
		"a\u202eb\u200bc":       "abc",
		"\xff\xfe":              "",
		"日本語のテキスト":              "日本語の…",
		"exactly10!":            "exactly10!",
		"eleven char":           "eleven ch…",
		"nine char":             "nine char",
		"e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301",
	} {
		if got := oneLine(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := oneLine(strings.Repeat("x", 500), 0); len(got) != 500 {
		t.Errorf("unbounded: %d", len(got))
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := frozen()
	for d, want := range map[time.Duration]string{
		-time.Hour: "now", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
	if got := age(now, time.Time{}); got != "-" {
		t.Errorf("never: %s", got)
	}
}

func TestSizesAndSumsAreShownInTheirUnits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{900: "900 B", 300 << 10: "300 KiB", 3 << 19: "1.5 MiB", 20 << 20: "20 MiB", 5 << 29: "2.5 GiB", 20 << 30: "20 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for micros, want := range map[int64]string{0: "", 10_000: "$0.01", 5_000_000: "$5.00", 23_214: "$0.0232"} {
		if got := usd(micros); got != want {
			t.Errorf("%d micros are %q, want %q", micros, got, want)
		}
	}
	zero, some := int64(0), int64(20<<30)
	for want, limit := range map[string]*int64{"-": nil, "none": &zero, "20 GiB": &some} {
		if got := limitText(limit, bytesText); got != want {
			t.Errorf("a limit is %q, want %q", got, want)
		}
	}
}
