package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// thousands writes 1234567 as 1,234,567.
func thousands[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// age writes how long ago something was, in its largest unit.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	d := now.Sub(then)
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// bytesText writes a size in its largest unit.
func bytesText(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// colours are the sequences by which programs colour their output.
var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// oneLine is text as one line of at most so many columns (0: any number) that
// is safe to print: what comes from a transcript must not move the cursor or
// colour the terminal.
func oneLine(s string, atMost int) string {
	if atMost > 0 && len(s) > 16*atMost {
		s = s[:16*atMost] // a long text needs no look to its end
	}
	var b strings.Builder
	columns, cut, space := 0, 0, false
	for _, r := range colours.ReplaceAllString(s, "") {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError, !unicode.IsPrint(r):
			continue
		}
		if space {
			b.WriteByte(' ')
			columns, space = columns+1, false
		}
		columns += runeColumns(r)
		if atMost > 0 && columns > atMost {
			return strings.TrimRight(b.String()[:cut], " ") + "…"
		}
		b.WriteRune(r)
		if columns < atMost {
			cut = b.Len()
		}
	}
	return b.String()
}

// middle shortens a name to so many columns by what is in its middle: its
// beginning and its end tell it from others.
func middle(s string, atMost int) string {
	if columns(s) <= atMost {
		return s
	}
	runes := []rune(s)
	from, used := 0, 1 // for the mark
	for ; used+runeColumns(runes[from]) <= (atMost+2)/2; from++ {
		used += runeColumns(runes[from])
	}
	to := len(runes)
	for ; used+runeColumns(runes[to-1]) <= atMost; to-- {
		used += runeColumns(runes[to-1])
	}
	return string(runes[:from]) + "…" + string(runes[to:])
}

// columns is how much room a line takes in a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// wide are the ranges that terminals draw two columns wide.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// plural writes a count and its noun.
func plural[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}
