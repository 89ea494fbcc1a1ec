package search_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/search"
)

// naive finds a unit by holding it against every atom of a text.
func naive(text string, u search.Unit, limit int) []search.Span {
	atoms := search.Atoms(text)
	var out []search.Span
	add := func(s search.Span) {
		if len(out) < limit && (len(out) == 0 || out[len(out)-1].To <= s.From) {
			out = append(out, s)
		}
	}
	n := len(u.Atoms)
	for i := range atoms {
		if i+n > len(atoms) {
			break
		}
		if !beginsAt(text, atoms[i], u) {
			continue
		}
		whole := true
		for j := 1; j < n && whole; j++ {
			want, got := u.Atoms[j], atoms[i+j]
			whole = want.Glued == got.Glued && (want.Term == got.Term || j == n-1 && endsAt(text, got, u))
		}
		if whole {
			add(search.Span{From: atoms[i].From, To: atoms[i+n-1].To})
		}
	}
	return out
}

// beginsAt: the atom, the last part of its word, or, for a word alone, any
// part is the unit's first; for a prefix alone, begins with it.
func beginsAt(text string, a search.Atom, u search.Unit) bool {
	want := u.Atoms[0].Term
	subs := partsOf(text, a)
	if len(u.Atoms) == 1 {
		fits := func(s string) bool { return s == want || u.Prefix && strings.HasPrefix(s, want) }
		if u.Prefix && a.Kind != search.Word {
			return false
		}
		return fits(a.Term) || slices.ContainsFunc(subs, fits)
	}
	return a.Term == want || len(subs) > 0 && subs[len(subs)-1] == want
}

func endsAt(text string, a search.Atom, u search.Unit) bool {
	want := u.Atoms[len(u.Atoms)-1]
	if want.Kind != search.Word || a.Kind != search.Word {
		return false
	}
	if u.Prefix {
		return strings.HasPrefix(a.Term, want.Term)
	}
	subs := partsOf(text, a)
	return len(subs) > 0 && subs[0] == want.Term
}

// partsOf are the parts of a word, read from its index entries.
func partsOf(text string, a search.Atom) []string {
	if a.Kind != search.Word {
		return nil
	}
	return search.Subwords(text[a.From:a.To])
}

// What the matcher finds is what looking at every atom finds.
func TestMatcherFindsWhatEveryAtomTells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := texts().Draw(rt, "text") + texts().Draw(rt, "more")
		q, err := search.Parse(strings.ToValidUTF8(texts().Draw(rt, "query"), ""))
		if err != nil {
			return
		}
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		for i, got := range search.NewMatcher(q.Units).Find(text, limit) {
			if diff := cmp.Diff(naive(text, q.Units[i], limit), got); diff != "" {
				rt.Fatalf("%q in %q (-want +got):\n%s", q.Units[i].Raw, text, diff)
			}
		}
	})
}
