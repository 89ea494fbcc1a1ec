package console_test

import (
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestWordsStandOutFromTheirGround: 4.5 to 1, as WCAG asks of text, in light and
// in dark.
func TestWordsStandOutFromTheirGround(t *testing.T) {
	t.Parallel()
	sheet := sources(t)["console.css"]
	light, dark := palette(sheet), palette(sheet)
	_, after, found := strings.Cut(sheet, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("there is no dark palette")
	}
	maps.Copy(dark, palette(after))
	grounds := map[string][]string{
		"text": {"page", "panel", "raised", "marked-bg", "came-bg", "left-bg", "changed-bg", "good-bg", "bad-bg", "mark"},
		"dim":  {"page", "panel", "raised", "marked-bg", "came-bg", "left-bg", "changed-bg"},
		"link": {"page", "panel", "raised", "marked-bg", "bad-bg"},
		"good": {"good-bg", "came-bg"}, "warn": {"warn-bg", "changed-bg", "panel"}, "bad": {"bad-bg", "left-bg", "page", "panel"},
		"user": {"panel", "marked-bg", "came-bg", "left-bg"}, "assistant": {"panel", "marked-bg", "came-bg", "left-bg"}, "result": {"panel", "marked-bg", "came-bg", "left-bg"},
		"note": {"panel", "marked-bg"}, "summary": {"panel", "came-bg", "raised"}, "on-accent": {"accent"},
	}
	for scheme, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		for ink, on := range grounds {
			for _, ground := range on {
				if c := contrast(t, colours[ink], colours[ground]); c < 4.5 {
					t.Errorf("%s: %s (%s) on %s (%s) is %.2f to 1", scheme, ink, colours[ink], ground, colours[ground], c)
				}
			}
		}
	}
}

// palette are the first values of a sheet's custom properties.
func palette(sheet string) map[string]string {
	out := make(map[string]string)
	for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(sheet, -1) {
		if out[m[1]] == "" {
			out[m[1]] = m[2]
		}
	}
	return out
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	hex = strings.TrimPrefix(hex, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 6 {
		t.Fatalf("no colour: %q", hex)
	}
	channel := func(v uint64) float64 {
		c := float64(v&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(n>>16) + 0.7152*channel(n>>8) + 0.0722*channel(n)
}
