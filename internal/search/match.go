package search

import "strings"

// Span is a place in a text, in bytes.
type Span struct{ From, To int }

// Matcher finds units in texts. It may be used by several at a time.
type Matcher struct {
	units []Unit
	// first has the units by the term that they begin with; prefixes are those
	// that are the beginning of a word and nothing else.
	first    map[string][]int
	prefixes []int
	// rows is whether some unit has more than one atom.
	rows bool
}

// NewMatcher makes a Matcher of units, which it keeps.
func NewMatcher(units []Unit) *Matcher {
	m := &Matcher{units: units, first: make(map[string][]int, len(units))}
	for i, u := range units {
		switch {
		case len(u.Atoms) == 0:
		case len(u.Atoms) == 1 && u.Prefix:
			m.prefixes = append(m.prefixes, i)
		default:
			m.first[u.Atoms[0].Term] = append(m.first[u.Atoms[0].Term], i)
			m.rows = m.rows || len(u.Atoms) > 1
		}
	}
	return m
}

// Find tells where a text holds each unit, in its order, at most limit places
// of each.
func (m *Matcher) Find(text string, limit int) [][]Span {
	s := scan{m: m, text: text, limit: limit, found: make([][]Span, len(m.units))}
	each(text, s.atom)
	for _, b := range s.begun {
		s.row(b)
	}
	return s.found
}

// scan is one text being looked through.
type scan struct {
	m     *Matcher
	text  string
	limit int
	found [][]Span
	// atoms are kept, and rows begun, where a unit has several atoms.
	atoms []Atom
	begun []begun
}

type begun struct{ unit, atom int }

func (s *scan) atom(a Atom) {
	s.term(a, a.Term, true)
	if a.Kind == Word {
		subs := subwords(s.text[a.From:a.To])
		for i, sub := range subs {
			if sub != a.Term {
				s.term(a, sub, i == len(subs)-1)
			}
		}
		for _, u := range s.m.prefixes {
			if begins(a.Term, subs, s.m.units[u].Atoms[0].Term) {
				s.add(u, Span{a.From, a.To})
			}
		}
	}
	if s.m.rows {
		s.atoms = append(s.atoms, a)
	}
}

// term notes what begins with an atom or with a part of its word. A row may
// begin with the last part only: what follows it follows the word.
func (s *scan) term(a Atom, term string, last bool) {
	for _, u := range s.m.first[term] {
		switch {
		case len(s.m.units[u].Atoms) == 1:
			s.add(u, Span{a.From, a.To})
		case last:
			s.begun = append(s.begun, begun{unit: u, atom: len(s.atoms)})
		}
	}
}

func (s *scan) add(unit int, at Span) {
	f := s.found[unit]
	if len(f) < s.limit && (len(f) == 0 || f[len(f)-1].To <= at.From) {
		s.found[unit] = append(f, at)
	}
}

func begins(term string, subs []string, prefix string) bool {
	if strings.HasPrefix(term, prefix) {
		return true
	}
	for _, sub := range subs {
		if strings.HasPrefix(sub, prefix) {
			return true
		}
	}
	return false
}

// row looks whether the atoms behind the first one stand in their order.
func (s *scan) row(b begun) {
	u := &s.m.units[b.unit]
	n := len(u.Atoms)
	if b.atom+n > len(s.atoms) {
		return
	}
	for i := 1; i < n; i++ {
		want, got := &u.Atoms[i], &s.atoms[b.atom+i]
		if want.Glued != got.Glued || want.Term != got.Term && (i < n-1 || !s.ends(u, want, got)) {
			return
		}
	}
	s.add(b.unit, Span{s.atoms[b.atom].From, s.atoms[b.atom+n-1].To})
}

// ends reports whether a word begins with the last atom of a row: with its
// letters for a prefix, else with it as its first part.
func (s *scan) ends(u *Unit, want, got *Atom) bool {
	if want.Kind != Word || got.Kind != Word {
		return false
	}
	if u.Prefix {
		return strings.HasPrefix(got.Term, want.Term)
	}
	subs := subwords(s.text[got.From:got.To])
	return len(subs) > 0 && subs[0] == want.Term
}
