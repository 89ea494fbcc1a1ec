package prefix_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/prefix"
)

func say(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text))
}

func TestLedger(t *testing.T) {
	t.Parallel()
	a, b, c, s := say("one"), say("two"), say("three"), say("a summary")
	size := func(ms ...json.RawMessage) (n int) {
		for _, m := range ms {
			n += len(m)
		}
		return n
	}
	window := func(epoch string, ms ...json.RawMessage) prefix.Window {
		return prefix.Window{Epoch: epoch, Messages: ms}
	}
	with := func(w prefix.Window, addition string) prefix.Window { w.Addition = addition; return w }
	for name, tc := range map[string]struct {
		windows []prefix.Window
		reused  int
		breaks  string
	}{
		"the first":       {[]prefix.Window{window("1", a)}, 0, ""},
		"only grows":      {[]prefix.Window{window("1", a), window("1", a, b)}, size(a), ""},
		"the same again":  {[]prefix.Window{window("1", a, b), window("1", a, b)}, size(a, b), ""},
		"compacted":       {[]prefix.Window{window("1", a, b), window("2", s, b)}, 0, prefix.BreakEpoch},
		"tenth epoch":     {[]prefix.Window{window("1", a, b), window("10", a, c)}, size(a), prefix.BreakEpoch},
		"trimmed":         {[]prefix.Window{window("1", a, b), window("1.4000", b, c)}, 0, prefix.BreakTrim},
		"something left":  {[]prefix.Window{window("1", a, b, c), window("1", a, c)}, size(a), prefix.BreakOther},
		"another preface": {[]prefix.Window{with(window("1", a), "x"), with(window("1", a, b), "y")}, 0, prefix.BreakOther},
		"shorter":         {[]prefix.Window{window("1", a, b), window("2", a)}, size(a), prefix.BreakEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l prefix.Ledger
			var last prefix.Call
			for _, w := range tc.windows {
				last = l.Add(w)
			}
			if last.ReusedBytes != tc.reused || last.Break != tc.breaks {
				t.Errorf("%d bytes reused, break %q; want %d, %q", last.ReusedBytes, last.Break, tc.reused, tc.breaks)
			}
			if (last.Rebilled > 0) != (tc.breaks != "") {
				t.Errorf("%d tokens billed again, break %q", last.Rebilled, last.Break)
			}
		})
	}
}

func TestTotalsAreTheCallsSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l prefix.Ledger
		want := prefix.Totals{Breaks: map[string]int{}}
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			var ms []json.RawMessage
			for _, x := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c d e"}), 0, 5).Draw(t, "window") {
				ms = append(ms, say(x))
			}
			c := l.Add(prefix.Window{Epoch: rapid.SampledFrom([]string{"1", "1.5", "2"}).Draw(t, "epoch"), Messages: ms})
			if c.ReusedBytes > c.Bytes || c.ReusedTokens > c.Tokens || c.Messages != len(ms) {
				t.Fatalf("call %+v", c)
			}
			want.Calls++
			want.Bytes += int64(c.Bytes)
			want.Tokens += int64(c.Tokens)
			want.ReusedBytes += int64(c.ReusedBytes)
			want.ReusedTokens += int64(c.ReusedTokens)
			want.Rebilled += int64(c.Rebilled)
			want.MaxTokens = max(want.MaxTokens, c.Tokens)
			if c.Break != "" {
				want.Breaks[c.Break]++
			}
		}
		if diff := cmp.Diff(want, l.Totals()); diff != "" {
			t.Fatal(diff)
		}
		if l.Totals().Share() > 1 || l.Totals().Fresh() < 0 {
			t.Fatalf("totals %+v", l.Totals())
		}
	})
}

func BenchmarkLedger(b *testing.B) {
	var ms []json.RawMessage
	for i := range 400 {
		ms = append(ms, say(fmt.Sprint(i, strings.Repeat(" some words of a message", 20))))
	}
	for b.Loop() {
		var l prefix.Ledger
		for n := 1; n <= len(ms); n++ {
			l.Add(prefix.Window{Epoch: "1", Messages: ms[:n]})
		}
	}
}
