package retrieval_test

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// block is how many messages are ranked on the text at once.
const block = 300

// naive ranks every message of a tenant by reading all of its texts.
type naive struct {
	parts  []store.SearchPart
	terms  []map[string]int
	all    int64
	length float64
}

type spot struct {
	sid uuid.UUID
	seq int64
}

type ranked struct {
	spot
	first, exact float64
	doc          int64
}

func readEverything(t *testing.T, b *bundle) *naive {
	t.Helper()
	rows, err := b.store.SearchScan(t.Context(), "t", &store.SearchFilter{}, "", store.SearchMark{Doc: math.MaxInt64, Horizon: math.MaxInt64}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	n := &naive{all: int64(len(rows))}
	for _, r := range rows {
		of := map[string]int{}
		words, _ := search.Terms(r.Text)
		for _, term := range words {
			of[term.Text] = term.Count
		}
		n.parts, n.terms = append(n.parts, r.SearchPart), append(n.terms, of)
		n.length += float64(r.Length)
	}
	return n
}

// holds is how often a part has a look-up, in one of its words.
func (n *naive) holds(part int, l search.Lookup) int {
	if !l.Prefix {
		return n.terms[part][l.Term]
	}
	for term := range n.terms[part] {
		if strings.HasPrefix(term, l.Term) {
			return 1
		}
	}
	return 0
}

// rank is every hit of a query, best first.
func (n *naive) rank(t *testing.T, query string) []ranked {
	t.Helper()
	q, err := search.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	var lookups []search.Lookup
	idf := make([]float64, len(q.Units))
	for i, u := range q.Units {
		fewest := int64(math.MaxInt64)
		for _, l := range u.Lookups() {
			lookups = append(lookups, l)
			has := int64(0)
			for p := range n.parts {
				if n.holds(p, l) > 0 {
					has++
				}
			}
			fewest = min(fewest, has)
		}
		idf[i] = max(search.IDF(fewest, n.all), 1e-6)
	}
	average := n.length / float64(n.all)
	of := map[spot][]int{}
	for i, p := range n.parts {
		at := spot{p.SID, p.Seq}
		of[at] = append(of[at], i)
	}
	var out []ranked
	matcher := search.NewMatcher(q.Units)
	for at, parts := range of {
		if !slices.ContainsFunc(lookups, func(l search.Lookup) bool {
			return !slices.ContainsFunc(parts, func(p int) bool { return n.holds(p, l) > 0 })
		}) {
			out = append(out, n.score(at, parts, lookups, matcher, idf, average))
		}
	}
	slices.SortFunc(out, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.first, a.first), cmp.Compare(b.doc, a.doc)) })
	var hits []ranked
	for part := range slices.Chunk(out, block) {
		slices.SortFunc(part, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.exact, a.exact), cmp.Compare(b.doc, a.doc)) })
		for _, r := range part {
			if r.exact > 0 {
				hits = append(hits, r)
			}
		}
	}
	return hits
}

// score gives a message its first rank, which knows counts by classes, and the
// exact one.
func (n *naive) score(at spot, parts []int, lookups []search.Lookup, m *search.Matcher, idf []float64, average float64) ranked {
	r := ranked{spot: at}
	best := make([]float64, len(idf))
	for _, p := range parts {
		part := &n.parts[p]
		first := float32(0)
		for _, l := range lookups {
			switch c := n.holds(p, l); {
			case c == 0:
				first = float32(math.Inf(-1))
			case c == 1:
				first += 0.455
			case c == 2:
				first += 0.625
			case c <= 4:
				first += 0.745
			default:
				first += 0.833
			}
		}
		if first > 0 || len(parts) > 1 {
			r.doc = max(r.doc, part.Doc)
		}
		if first > 0 {
			r.first = max(r.first, float64(first/float32(len(lookups)))/(0.3+0.7*float64(part.Length)/average))
		}
		for u, spans := range m.Find(part.Text, 32) {
			best[u] = max(best[u], idf[u]*search.Saturate(float64(len(spans)), part.Length, average, search.LengthAll))
		}
	}
	if slices.Contains(best, 0) {
		return r
	}
	for _, s := range best {
		r.exact += s
	}
	return r
}

// What a search shows, page by page, is what ranking every message would:
// nothing that is left unread could have been among it.
func TestPagesAreThoseOfRankingEverything(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS does not name a directory of transcripts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "pi", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no transcripts in " + dir + "/pi")
	}
	b := setup(t)
	for _, f := range files {
		for part := range slices.Chunk(readMessages(t, f), 500) {
			if _, err := b.engine.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: on("t", filepath.Base(f)), Messages: part}); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.find(retrieval.Request{Query: "x"})
	n := readEverything(t, b)
	for _, query := range []string{
		"handleResumeSession", "file", "the", "session file", "the to of a", `"switch session"`, `"in the"`, "packages/coding-agent", "->", ":", "import from", "handle*",
	} {
		want := n.rank(t, query)
		var got []retrieval.Hit
		for after := ""; ; {
			a := b.find(retrieval.Request{Query: query, Limit: 70, After: after})
			got = append(got, a.Hits...)
			if after = a.Next; after == "" {
				break
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: %d hits, ranking everything has %d", query, len(got), len(want))
			continue
		}
		if strings.Contains(query, "*") {
			continue // the first rank adds up over the words with a prefix
		}
		for i := range got {
			if math.Abs(got[i].Score-want[i].exact) > 1e-9 {
				t.Errorf("%q: hit %d is %s/%d with %.6f, not seq %d with %.6f", query, i, got[i].SessionKey, got[i].Seq, got[i].Score, want[i].seq, want[i].exact)
				break
			}
		}
		t.Logf("%q: %d hits", query, len(got))
	}
}
