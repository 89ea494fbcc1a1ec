package search

import "strings"

// Span is a place in a text, in bytes.
type Span struct{ From, To int }

// Text is a text that was read for matching.
type Text struct {
	Source string
	Atoms  []Atom
	// places of each term, ascending; parts of words are under their own term.
	places map[string][]place
	// Length is the number of words and characters.
	Length int
}

// place is an atom that has a term: whole, or as its first or last part.
type place struct {
	atom        int32
	whole       bool
	first, last bool
}

// Read prepares a text.
func Read(text string) *Text {
	t := &Text{Source: text, places: make(map[string][]place, len(text)/8+1)}
	t.Atoms = make([]Atom, 0, len(text)/5+1)
	each(text, func(a Atom) {
		at := int32(len(t.Atoms))
		t.Atoms = append(t.Atoms, a)
		t.places[a.Term] = append(t.places[a.Term], place{atom: at, whole: true, first: true, last: true})
		if a.Kind == Sign {
			return
		}
		t.Length++
		if a.Kind != Word {
			return
		}
		subs := subwords(text[a.From:a.To])
		for i, s := range subs {
			if s != a.Term {
				t.places[s] = append(t.places[s], place{atom: at, first: i == 0, last: i == len(subs)-1})
			}
		}
	})
	return t
}

// Find tells where a text holds a unit, at most limit places.
func (t *Text) Find(u Unit, limit int) []Span {
	n := len(u.Atoms)
	if n == 0 || n > len(t.Atoms) {
		return nil
	}
	if n == 1 {
		return t.findOne(u, limit)
	}
	var out []Span
	next := 0
	for _, p := range t.places[u.Atoms[0].Term] {
		// The first atom may be the end of a word, the last its beginning.
		if at := int(p.atom); p.last && at >= next && t.matches(u, at) {
			out = append(out, Span{t.Atoms[at].From, t.Atoms[at+n-1].To})
			if len(out) == limit {
				break
			}
			next = at + 1
		}
	}
	return out
}

func (t *Text) findOne(u Unit, limit int) []Span {
	term, out := u.Atoms[0].Term, []Span(nil)
	if u.Prefix {
		for i := range t.Atoms {
			if len(out) < limit && t.begins(i, term) {
				out = append(out, Span{t.Atoms[i].From, t.Atoms[i].To})
			}
		}
		return out
	}
	last := int32(-1)
	for _, p := range t.places[term] {
		if p.atom != last && len(out) < limit {
			out = append(out, Span{t.Atoms[p.atom].From, t.Atoms[p.atom].To})
		}
		last = p.atom
	}
	return out
}

// begins reports whether a word, or a part of it, begins with a prefix.
func (t *Text) begins(at int, prefix string) bool {
	a := t.Atoms[at]
	if a.Kind != Word {
		return false
	}
	if strings.HasPrefix(a.Term, prefix) {
		return true
	}
	if !strings.Contains(a.Term, prefix) {
		return false
	}
	for _, s := range subwords(t.Source[a.From:a.To]) {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// matches reports whether the atoms behind the first one stand in their order.
func (t *Text) matches(u Unit, at int) bool {
	n := len(u.Atoms)
	if at+n > len(t.Atoms) {
		return false
	}
	for i := 1; i < n; i++ {
		want, got := u.Atoms[i], t.Atoms[at+i]
		if want.Glued != got.Glued {
			return false
		}
		if want.Term == got.Term {
			continue
		}
		if i < n-1 || want.Kind != Word || got.Kind != Word {
			return false
		}
		if u.Prefix {
			return strings.HasPrefix(got.Term, want.Term)
		}
		subs := subwords(t.Source[got.From:got.To])
		return len(subs) > 0 && subs[0] == want.Term
	}
	return true
}
