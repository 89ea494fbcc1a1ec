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
	// may tells which words can be one of first or begin with one of prefixes:
	// nearly all of a text's words are turned away by it.
	may sieve
}

// NewMatcher makes a Matcher of units, which it keeps.
func NewMatcher(units []Unit) *Matcher {
	m := &Matcher{units: units, first: make(map[string][]int, len(units))}
	for i, u := range units {
		switch {
		case len(u.Atoms) == 0:
		case len(u.Atoms) == 1 && u.Prefix:
			m.prefixes = append(m.prefixes, i)
			m.may.prefix(u.Atoms[0].Term)
		default:
			m.first[u.Atoms[0].Term] = append(m.first[u.Atoms[0].Term], i)
			m.may.term(u.Atoms[0].Term)
		}
	}
	return m
}

// Find tells where a text holds each unit, in its order, at most limit places
// of each.
func (m *Matcher) Find(text string, limit int) [][]Span {
	s := scan{m: m, text: text, limit: limit, at: -1, found: make([][]Span, len(m.units))}
	walk(text, 0, s.atom)
	return s.found
}

// scan is one text being looked through.
type scan struct {
	m     *Matcher
	text  string
	limit int
	found [][]Span
	// at is where the last atom began, nth how many of it came before: a
	// character may be spelled as several.
	at, nth int
	// lower is where words are folded.
	lower [maxTerm]byte
}

func (s *scan) atom(a Atom, raw bool) bool {
	if a.From == s.at && a.Kind != Word {
		s.nth++
	} else {
		s.at, s.nth = a.From, 0
	}
	if a.Kind != Word {
		s.term(a, a.Term, true)
		return true
	}
	if !raw || !plain(a.Term) {
		// A word of several parts, or one that is not ASCII.
		if raw {
			a.Term = Fold(a.Term)
		}
		s.parted(a)
		return true
	}
	if !s.m.may.has(a.Term) {
		return true
	}
	term := a.Term
	if len(term) <= len(s.lower) {
		// Only its first letter may be a capital.
		s.lower[0] = lowerASCII(term[0])
		copy(s.lower[1:], term[1:])
		for _, u := range s.m.first[string(s.lower[:len(term)])] {
			s.begin(u, a, true)
		}
	} else {
		s.term(a, Fold(term), true)
	}
	if len(s.m.prefixes) > 0 {
		term = Fold(term)
		for _, u := range s.m.prefixes {
			if strings.HasPrefix(term, s.m.units[u].Atoms[0].Term) {
				s.add(u, Span{a.From, a.To})
			}
		}
	}
	return true
}

// parted looks at a word and the parts that it may have.
func (s *scan) parted(a Atom) {
	s.term(a, a.Term, true)
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

// term notes what begins with an atom or with a part of its word. A row may
// begin with the last part only: what follows it follows the word.
func (s *scan) term(a Atom, term string, last bool) {
	for _, u := range s.m.first[term] {
		s.begin(u, a, last)
	}
}

func (s *scan) begin(unit int, a Atom, last bool) {
	if len(s.m.units[unit].Atoms) == 1 {
		s.add(unit, Span{a.From, a.To})
		return
	}
	if last && len(s.found[unit]) < s.limit {
		s.row(unit, a)
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

// row looks whether the atoms behind the first one stand in their order. Few
// begin, so the text is read again from there instead of being kept in atoms.
func (s *scan) row(unit int, first Atom) {
	u := &s.m.units[unit]
	i := -s.nth
	walk(s.text, first.From, func(a Atom, raw bool) bool {
		if i > 0 {
			if raw {
				a.Term = Fold(a.Term)
			}
			want := &u.Atoms[i]
			if want.Glued != a.Glued || want.Term != a.Term && (i < len(u.Atoms)-1 || !s.ends(u, want, &a)) {
				return false
			}
		}
		if i++; i == len(u.Atoms) {
			s.add(unit, Span{first.From, a.To})
			return false
		}
		return true
	})
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
