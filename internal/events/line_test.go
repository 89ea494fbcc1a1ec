package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/events"
)

// ancestry is a session that forked from another one, which forked …; the
// oldest first, each with the seq at which the next one left it.
type ancestry struct {
	line events.Line
	cuts []int64
}

func sid(i int) events.SID { return events.SID{byte(i + 1)} }

func drawAncestry(t *rapid.T) ancestry {
	var a ancestry
	for i := range rapid.IntRange(0, 4).Draw(t, "ancestors") {
		at := rapid.Int64Range(1, 6).Draw(t, "fork at")
		a.line = a.line.Extend(sid(i), string(rune('a'+i)), at, int64(10*i))
		a.cuts = append(a.cuts, at)
	}
	return a
}

func TestPlacesNameOneEventEach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := drawAncestry(t)
		place := int64(0)
		for i, cut := range a.cuts {
			for seq := int64(1); seq <= cut; seq++ {
				place++
				seg, got, own := a.line.Locate(place)
				if own || seg.SID != sid(i) || got != seq {
					t.Fatalf("place %d of %+v is seq %d of %v (own: %t), want seq %d of ancestor %d", place, a.line, got, seg.SID, own, seq, i)
				}
			}
		}
		if a.line.Base() != place {
			t.Fatalf("Base = %d, want %d", a.line.Base(), place)
		}
		for seq := int64(1); seq <= 5; seq++ {
			at := a.line.Place(seq)
			if _, got, own := a.line.Locate(at); !own || got != seq || at != place+seq {
				t.Fatalf("own seq %d stands at %d and is found as %d (own: %t)", seq, at, got, own)
			}
		}
		if got := len(a.line.Ancestors()); got != len(a.cuts) {
			t.Fatalf("%d ancestors, want %d", got, len(a.cuts))
		}
	})
}

func TestExtendLeavesItsLineAlone(t *testing.T) {
	t.Parallel()
	parent := make(events.Line, 1, 4)
	parent[0] = events.Segment{SID: sid(0), To: 3}
	one, two := parent.Extend(sid(1), "one", 2, 0), parent.Extend(sid(2), "two", 5, 0)
	if one[1].SID != sid(1) || two[1].SID != sid(2) || len(parent) != 1 {
		t.Errorf("two forks of one line share it: %+v, %+v", one, two)
	}
}

func TestWithoutAncestorForgetsAllThatStoodBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := drawAncestry(t)
		s := events.FirstState()
		s.Line, s.Path, s.Live = a.line, drawPath(t), drawLive(t)
		for i := range s.Live {
			s.Live[i].Seq = rapid.Int64Range(1, 60).Draw(t, "summary's place")
		}
		for p := int64(1); p <= places; p += 3 {
			s.Superseded = append(s.Superseded, events.Superseded{Seq: p, By: p + 1})
		}
		if _, was := s.WithoutAncestor(sid(9)); was {
			t.Fatal("a stranger was taken for an ancestor")
		}
		if len(a.cuts) == 0 {
			return
		}
		gone := rapid.IntRange(0, len(a.cuts)-1).Draw(t, "erased")
		next, was := s.WithoutAncestor(sid(gone))
		if !was {
			t.Fatalf("ancestor %d of %+v is unknown", gone, a.line)
		}
		end := a.line[gone].To
		for p := int64(1); p <= places; p++ {
			if want := p > end && s.OnPath(p); next.OnPath(p) != want {
				t.Fatalf("place %d is on the path: %t, want %t (gone up to %d)", p, next.OnPath(p), want, end)
			}
			seg, seq, own := next.Line.Locate(p)
			wasSeg, wasSeq, wasOwn := s.Line.Locate(p)
			if p > end && (seg.SID != wasSeg.SID || seq != wasSeq || own != wasOwn) {
				t.Fatalf("place %d names another event than before", p)
			}
			if p <= end && seg.SID != (events.SID{}) {
				t.Fatalf("place %d still names %v", p, seg.SID)
			}
		}
		for _, l := range next.Live {
			if l.Seq <= end || events.AnyUpTo(l.Covers, end) {
				t.Fatalf("summary %+v was made of what is gone up to %d", l, end)
			}
		}
		for _, x := range next.Superseded {
			if x.Seq <= end || x.By <= end {
				t.Fatalf("shorter form %+v was made of what is gone up to %d", x, end)
			}
		}
		if again, was := next.WithoutAncestor(sid(gone)); was {
			t.Fatalf("erased twice: %+v", again.Line)
		}
	})
}

func TestSIDText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want, got events.SID
		copy(want[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "sid"))
		text, err := want.MarshalText()
		if err != nil || len(text) != 36 {
			t.Fatalf("%q, %v", text, err)
		}
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	})
	for _, bad := range []string{"", "1234", "zz00000000000000000000000000000g"} {
		var s events.SID
		if err := s.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, s)
		}
	}
}

// The numbers are in every row that was ever written, the names on the wire.
func TestTypesKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	want := []string{
		1: "message.appended", 2: "turn.committed", 3: "turn.completed", 4: "host_session.bound", 5: "identity.linked",
		6: "leaf.moved", 7: "session.reset", 8: "summary.created", 9: "epoch.rotated", 10: "message.superseded",
		11: "forked", 12: "subagent.prepared", 13: "subagent.ended", 14: "ancestor.erased", 15: "unknown",
	}
	want[0] = "unknown"
	got := make([]string, len(want))
	for i := range got {
		got[i] = events.Type(i).String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestShorterFormKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, by := range []string{`{"role":"user","content":"a\u003cb <"}`, `{ "role" : "user", "n": 1.0e2 }`} {
		raw, err := events.MessageSupersededBody{Seq: 7, By: []byte(by), Reason: `it said "<5 MB>"`}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := events.ReadSuperseded(raw)
		if err != nil || string(got) != by {
			t.Errorf("%s came back as %s, %v", by, got, err)
		}
	}
}
