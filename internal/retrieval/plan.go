package retrieval

import (
	"regexp"
	"slices"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// plan is a request made ready: what the index is asked, what a text is held
// against.
type plan struct {
	filter store.SearchFilter
	wants  []search.Want
	// lookups has the entries of the index: for MatchAll one that each text must
	// have, for MatchAny the forms of one want.
	lookups [][]search.Lookup
	// owner is the want that a look-up belongs to.
	owner  []int
	rarest int
	// matcher finds the forms of all wants; form is the want of each.
	matcher *search.Matcher
	form    []int
	idf     []float64
	expr    *regexp.Regexp
	filler  string
	until   time.Time
}

// maxExpression is the bytes of an expression.
const maxExpression = 1000

func (r *Request) plan() (*plan, error) {
	if err := checkText(r.Query); err != nil {
		return nil, err
	}
	p := &plan{filter: store.SearchFilter{
		Kinds: r.Kinds, Roles: r.Roles, Tool: r.Tool, Epoch: r.Epoch, Since: r.Since, Until: r.Until, Without: r.Without,
	}}
	if r.Regex {
		return p, p.compile(r.Query)
	}
	q, err := search.Parse(r.Query)
	if err != nil {
		return nil, invalid(err)
	}
	if r.Match == MatchAny {
		p.wants = search.Wants(q)
	} else {
		for _, u := range q.Units {
			p.wants = append(p.wants, search.Want{Forms: []search.Unit{u}, Weight: 1})
		}
	}
	p.ask(r.Match)
	return p, nil
}

// ask makes the look-ups of the wants, and the matcher.
func (p *plan) ask(match Match) {
	p.lookups, p.owner, p.form, p.rarest = nil, nil, nil, 0
	var units []search.Unit
	for i, w := range p.wants {
		for range w.Forms {
			p.form = append(p.form, i)
		}
		units = append(units, w.Forms...)
		if match == MatchAll {
			for _, l := range telling(w.Forms[0].Lookups()) {
				p.lookups, p.owner = append(p.lookups, []search.Lookup{l}), append(p.owner, i)
			}
			continue
		}
		var forms []search.Lookup
		for _, f := range w.Forms {
			forms = append(forms, longest(f.Lookups()))
		}
		p.lookups, p.owner = append(p.lookups, forms), append(p.owner, i)
	}
	p.matcher = search.NewMatcher(units)
}

// mostLookups bounds what the index is asked for one unit. Each is a scan of its
// own; what they let through is compared with the text in any case.
const mostLookups = 8

// telling are the look-ups of a unit that tell most: each once, and of very many
// the longest.
func telling(of []search.Lookup) []search.Lookup {
	seen := make(map[search.Lookup]bool, len(of))
	var out []search.Lookup
	for _, l := range of {
		if !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	if len(out) > mostLookups {
		slices.SortStableFunc(out, func(a, b search.Lookup) int { return len(b.Term) - len(a.Term) })
		out = out[:mostLookups]
	}
	return out
}

// longest stands for a unit of several look-ups where one is enough.
func longest(of []search.Lookup) search.Lookup {
	out := of[0]
	for _, l := range of[1:] {
		if len(l.Term) > len(out.Term) {
			out = l
		}
	}
	return out
}

func (p *plan) compile(expr string) error {
	if expr == "" {
		return invalid(search.ErrEmptyQuery)
	}
	if len(expr) > maxExpression {
		return &contextengine.InvalidError{Field: "q", Reason: "is an expression of more than 1000 bytes"}
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return invalid(err)
	}
	p.expr = re
	p.filler = search.Clean(search.Required(expr))
	return nil
}

// weigh takes in how many of all parts have each look-up, counted up to newest.
func (p *plan) weigh(counts []int64, all int64) {
	fewest := make([]int64, len(p.wants))
	for i := range fewest {
		fewest[i] = newest
	}
	for i, n := range counts {
		if n < counts[p.rarest] {
			p.rarest = i
		}
		fewest[p.owner[i]] = min(fewest[p.owner[i]], n)
	}
	p.idf = make([]float64, len(p.wants))
	for i, n := range fewest {
		p.idf[i] = search.IDF(n, all) * p.wants[i].Weight
	}
}

func (c *cursor) average() float64 {
	if c.parts == 0 {
		return 1
	}
	return max(1, float64(c.length)/float64(c.parts))
}
