package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a query.
const (
	// MaxQuery is the bytes of a query.
	MaxQuery = 4096
	// MaxUnits is how many words and phrases it may hold.
	MaxUnits = 64
)

// Errors of a query, for a caller that answers with them.
var (
	ErrEmptyQuery = errors.New("holds nothing that can be looked for")
	ErrLongQuery  = fmt.Errorf("is longer than %d bytes", MaxQuery)
	ErrManyUnits  = fmt.Errorf("has more than %d words and phrases", MaxUnits)
	ErrNotUTF8    = errors.New("is not UTF-8")
)

// Unit is one thing that a text must hold: atoms in a row.
type Unit struct {
	Atoms []Atom
	// Prefix: the last atom is the beginning of a word.
	Prefix bool
	// Raw is the unit as the query has it.
	Raw string
}

// Query is what is looked for: every unit, in any order.
type Query struct{ Units []Unit }

// Parse reads a query: words parted by blanks, and "phrases" in double
// quotes. A word that ends in * is a prefix. All other signs are text; there
// are no operators. A quote that is not closed reaches to the end.
func Parse(q string) (Query, error) {
	switch {
	case len(q) > MaxQuery:
		return Query{}, ErrLongQuery
	case !utf8.ValidString(q):
		return Query{}, ErrNotUTF8
	}
	out := read(q)
	switch {
	case len(out.Units) == 0:
		return Query{}, ErrEmptyQuery
	case len(out.Units) > MaxUnits:
		return Query{}, ErrManyUnits
	}
	return out, nil
}

func read(q string) Query {
	var out Query
	seen := map[string]struct{}{}
	add := func(raw string, phrase bool) {
		for _, u := range unitsOf(raw, phrase) {
			key := u.key()
			if _, ok := seen[key]; !ok {
				seen[key] = struct{}{}
				out.Units = append(out.Units, u)
			}
		}
	}
	for q != "" {
		before, rest, quoted := strings.Cut(q, `"`)
		add(before, false)
		if !quoted {
			break
		}
		phrase, after, _ := strings.Cut(rest, `"`)
		add(phrase, true)
		q = after
	}
	return out
}

// unitsOf makes a phrase one unit, other text a unit for each run of atoms
// without a blank.
func unitsOf(raw string, phrase bool) []Unit {
	atoms := Atoms(raw)
	var out []Unit
	for i := 0; i < len(atoms); {
		end := i + 1
		for end < len(atoms) && (phrase || atoms[end].Glued) {
			end++
		}
		u := Unit{Atoms: atoms[i:end], Raw: raw[atoms[i].From:atoms[end-1].To]}
		if !phrase {
			u = u.star()
		}
		out = append(out, u)
		i = end
	}
	return out
}

// star makes a prefix of a unit that ends in * and has more than signs. Behind
// a sign, what the prefix would narrow is open anyway: parse_* is parse_.
func (u Unit) star() Unit {
	n := len(u.Atoms) - 1
	if n < 1 || u.Atoms[n].Term != "*" || u.Atoms[n-1].Term == "*" {
		return u
	}
	if slices.ContainsFunc(u.Atoms[:n], func(a Atom) bool { return a.Kind != Sign }) {
		u.Atoms, u.Prefix = u.Atoms[:n], u.Atoms[n-1].Kind == Word
	}
	return u
}

// key is the same for units that ask for the same.
func (u Unit) key() string {
	var b strings.Builder
	for i, a := range u.Atoms {
		if i > 0 && !a.Glued {
			b.WriteByte(' ')
		}
		b.WriteString(a.Term)
	}
	if u.Prefix {
		b.WriteString("\x00*")
	}
	return b.String()
}

// Lookup is one entry that the index is asked for.
type Lookup struct {
	Term   string
	Prefix bool
}

// Lookups are the entries that every text with the unit has. Signs that
// nearly all texts hold are left out beside words.
func (u Unit) Lookups() []Lookup {
	var out []Lookup
	words := false
	for _, a := range u.Atoms {
		words = words || a.Kind != Sign
	}
	for i, a := range u.Atoms {
		switch {
		case a.Kind == Word:
			out = append(out, Lookup{Term: clip(a.Term), Prefix: u.Prefix && i == len(u.Atoms)-1})
		case i > 0 && a.Glued && u.Atoms[i-1].Kind == a.Kind:
			if a.Kind == Char || !words {
				out = append(out, Lookup{Term: u.Atoms[i-1].Term + a.Term})
			}
		case i+1 < len(u.Atoms) && u.Atoms[i+1].Kind == a.Kind && u.Atoms[i+1].Glued:
			// The pair with the next one says more.
		case a.Kind == Char || !words || !usual(a.Term):
			out = append(out, Lookup{Term: a.Term})
		}
	}
	return out
}

func usual(s string) bool { return len(s) == 1 }
