package tokens

import (
	"testing"

	"pgregory.net/rapid"
)

// plain is byte pair encoding as it is told.
func plain(s string) int {
	parts := make([]string, 0, len(s))
	for i := range len(s) {
		parts = append(parts, s[i:i+1])
	}
	for {
		best, at := uint32(none), -1
		for i := range len(parts) - 1 {
			if r := rank(parts[i] + parts[i+1]); r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return len(parts)
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
}

func TestBothWaysOfMergingCountTheSame(t *testing.T) {
	t.Parallel()
	alphabet := rapid.SampledFrom([]string{"y", "ab", "etaoinsr", "abcdefghijklmnopqrstuvwxyz", "-=_*#.{}()[]", "日本語の我们需要先", "\x80\xff\xe3a"})
	rapid.Check(t, func(t *rapid.T) {
		signs := alphabet.Draw(t, "alphabet")
		raw := rapid.SliceOfN(rapid.IntRange(0, len(signs)-1), 1, part).Draw(t, "text")
		b := make([]byte, len(raw))
		for i, at := range raw {
			b[i] = signs[at]
		}
		s := string(b)
		want := plain(s)
		if got := mergeLong(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
		if got := merge(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	})
}
