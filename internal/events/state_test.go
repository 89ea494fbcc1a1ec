package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/events"
)

// places is how far the properties look; what is open ends behind it.
const places = 80

func drawPath(t *rapid.T) []events.Range {
	var path []events.Range
	at := int64(1)
	for range rapid.IntRange(0, 4).Draw(t, "closed ranges") {
		from := at + rapid.Int64Range(0, 4).Draw(t, "gap")
		to := from + rapid.Int64Range(0, 5).Draw(t, "length")
		path = append(path, events.Range{From: from, To: to})
		at = to + 2
	}
	return append(path, events.Range{From: at + rapid.Int64Range(0, 3).Draw(t, "last gap"), To: events.Open})
}

// drawLive covers runs of the line that do not meet.
func drawLive(t *rapid.T) []events.LiveSummary {
	var live []events.LiveSummary
	at := int64(1)
	for i := range rapid.IntRange(0, 4).Draw(t, "summaries") {
		l := events.LiveSummary{Seq: places + int64(i), Level: 1, Tokens: rapid.IntRange(1, 9).Draw(t, "tokens")}
		for range rapid.IntRange(1, 2).Draw(t, "runs") {
			from := at + rapid.Int64Range(0, 3).Draw(t, "skip")
			to := from + rapid.Int64Range(0, 4).Draw(t, "run")
			l.Covers = append(l.Covers, events.Range{From: from, To: to})
			at = to + 1
		}
		live = append(live, l)
	}
	return live
}

func set(ranges ...events.Range) map[int64]bool {
	out := map[int64]bool{}
	for _, r := range ranges {
		for p := r.From; p <= min(r.To, places); p++ {
			out[p] = true
		}
	}
	return out
}

func TestFirstUncovered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := events.State{Path: drawPath(t), Live: drawLive(t)}
		var covers []events.Range
		for _, l := range s.Live {
			covers = append(covers, l.Covers...)
		}
		path, covered := set(s.Path...), set(covers...)
		first := s.FirstUncovered()
		for p := int64(1); p <= places; p++ {
			if got := s.OnPath(p); got != path[p] {
				t.Fatalf("OnPath(%d) = %t of path %v", p, got, s.Path)
			}
			if got := s.Covered(p); got != covered[p] {
				t.Fatalf("Covered(%d) = %t of %v", p, got, covers)
			}
			if p < first && path[p] && !covered[p] {
				t.Fatalf("FirstUncovered = %d, but %d is on the path %v and not covered by %v", first, p, s.Path, covers)
			}
		}
		if first <= places && (!path[first] || covered[first]) {
			t.Fatalf("FirstUncovered = %d of path %v, covered %v", first, s.Path, covers)
		}
	})
}

func TestCutPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		path := drawPath(t)
		upto := rapid.Int64Range(0, places-1).Draw(t, "upto")
		reopen := rapid.Int64Range(upto+1, places).Draw(t, "reopen")
		before, after := set(path...), set(events.CutPath(path, upto, reopen)...)
		for p := int64(1); p <= places; p++ {
			if want := p <= upto && before[p] || p >= reopen; after[p] != want {
				t.Fatalf("cut of %v at %d, open again at %d: %d is on the path: %t, want %t", path, upto, reopen, p, after[p], want)
			}
		}
	})
}

func TestKeepOnPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live, path := drawLive(t), drawPath(t)
		on := set(path...)
		kept := map[int64]bool{}
		for _, l := range events.KeepOnPath(live, path) {
			kept[l.Seq] = true
		}
		for _, l := range live {
			whole := true
			for p := range set(l.Covers...) {
				whole = whole && on[p]
			}
			if kept[l.Seq] != whole {
				t.Fatalf("%v is kept: %t, lies wholly on %v: %t", l.Covers, kept[l.Seq], path, whole)
			}
		}
	})
}

func TestLiveTokensIsWhatAWindowShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := events.State{Path: []events.Range{{From: 1, To: events.Open}}, Live: drawLive(t)}
		head := rapid.Int64Range(places, places+5).Draw(t, "head")
		tokens := make(map[int64]int64, head)
		var total int64
		for p := int64(1); p <= head; p++ {
			tokens[p] = rapid.Int64Range(0, 50).Draw(t, "tokens")
			total += tokens[p]
		}
		for i := range s.Live {
			for _, c := range s.Live[i].Covers {
				for p := c.From; p <= c.To; p++ {
					s.Live[i].CoveredTokens += tokens[p]
				}
			}
		}
		var forms []events.Superseded
		for p := int64(1); p <= head; p++ {
			if rapid.Bool().Draw(t, "superseded") {
				saved := rapid.Int64Range(0, tokens[p]).Draw(t, "saved")
				forms = append(forms, events.Superseded{Seq: p, By: head + p, Saved: int(saved)})
			}
		}
		s.Superseded = events.ShownShorter(s.Path, s.Live, forms)
		var want int64
		for p := int64(1); p <= head; p++ {
			if s.Covered(p) {
				continue
			}
			want += tokens[p]
			if x, ok := s.Shorter(p); ok {
				want -= int64(x.Saved)
			}
		}
		for _, l := range s.Live {
			want += int64(l.Tokens)
		}
		if got := s.LiveTokens(total); got != want {
			t.Fatalf("LiveTokens = %d, want %d", got, want)
		}
	})
}

func TestShownShorterKeepsTheNewestForm(t *testing.T) {
	t.Parallel()
	path := []events.Range{{From: 2, To: 4}, {From: 6, To: events.Open}}
	live := []events.LiveSummary{{Seq: 20, Covers: []events.Range{{From: 2, To: 2}}}}
	got := events.ShownShorter(path, live,
		[]events.Superseded{{Seq: 7, By: 30, Saved: 1}, {Seq: 5, By: 31}, {Seq: 2, By: 32}},
		[]events.Superseded{{Seq: 7, By: 29, Saved: 2}, {Seq: 3, By: 33}},
	)
	want := []events.Superseded{{Seq: 3, By: 33}, {Seq: 7, By: 30, Saved: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shown in a shorter form (-want +got):\n%s", diff)
	}
}

func TestStateComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := events.FirstState()
		want.Epoch = rapid.Int64Range(1, 9).Draw(t, "epoch")
		want.Path, want.Live = drawPath(t), drawLive(t)
		want.Line = events.Line{}.Extend(events.SID{1}, "agent:main:main", rapid.Int64Range(1, 9).Draw(t, "at"), 7)
		raw, err := events.EncodeState(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := events.DecodeState(raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("state (-want +got):\n%s", diff)
		}
	})
}

func TestDecodeStateRefuses(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"no JSON":      `{`,
		"no path":      `{"epoch":3}`,
		"closed path":  `{"epoch":3,"path":[{"from":1,"to":9}]}`,
		"another type": `[]`,
	} {
		if s, err := events.DecodeState([]byte(raw)); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
	if s, err := events.DecodeState(nil); err != nil || s.Epoch != 1 || !s.OnPath(1) {
		t.Errorf("nothing stored is read as %+v, %v; want the first state", s, err)
	}
}
