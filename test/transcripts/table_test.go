package transcripts_test

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var writeTable = flag.Bool("table", false, "write what was measured to docs/transcripts.md")

//go:embed testdata/transcripts.md
var introduction []byte

// measured is what the tests of a run measured.
var measured results

type results struct {
	mu      sync.Mutex
	cycles  []*row
	replays []*replayed
}

// row is what was measured of one file at one budget.
type row struct {
	file   *file
	budget int

	whole                 int
	before, after, forced size
	leftBefore, leftAfter int
	epochs, summaries     int
	over                  int
}

// size of the largest window, estimated and counted.
type size struct{ estimated, counted int }

func (s *size) take(w *seen) {
	if w != nil && w.res.EstimatedTokens >= s.estimated {
		*s = size{w.res.EstimatedTokens, w.tokens}
	}
}

func pair(s size) string { return fmt.Sprintf("%d / %d", s.estimated, s.counted) }

func (r *row) take(o *outcome) {
	r.whole += o.whole
	r.epochs += o.epochs
	r.summaries += o.summaries
	for _, x := range []struct {
		w    *seen
		size *size
		left *int
	}{{o.before, &r.before, &r.leftBefore}, {o.after, &r.after, &r.leftAfter}, {o.forced, &r.forced, new(int)}} {
		if x.w == nil {
			continue
		}
		x.size.take(x.w)
		*x.left += x.w.res.LeftOut
		if x.w.over {
			r.over++
		}
	}
}

// replayed is what the replays of a file met at one budget.
type replayed struct {
	file      *file
	budget    int
	never, as passage
}

func (m *results) cycled(r *row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cycles = append(m.cycles, r)
}

func (m *results) passed(f *file, budget int, pays bool, p *passage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.replays, func(r *replayed) bool { return r.file.name == f.name && r.budget == budget })
	if i < 0 {
		i = len(m.replays)
		m.replays = append(m.replays, &replayed{file: f, budget: budget})
	}
	into := &m.replays[i].never
	if pays {
		into = &m.replays[i].as
	}
	into.windows += p.windows
	into.changed += p.changed
	into.early += p.early
	into.epochs += p.epochs
	into.underused += p.underused
	into.over = append(into.over, p.over...)
}

// finish ends the run, and writes the tables of one in which all went well.
func finish(code int) {
	if *writeTable && code == 0 {
		if err := os.WriteFile("../../docs/transcripts.md", measured.document(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func (m *results) document() []byte {
	var b bytes.Buffer
	b.Write(introduction)
	b.WriteString("\n## The cycle\n\n| Transcript | Sessions | Messages | Tokens | Budget | Before | After | Forced | Left out | Epochs | Summaries |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	slices.SortFunc(m.cycles, func(a, b *row) int { return order(a.file, b.file, a.budget, b.budget) })
	for _, r := range m.cycles {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s | %s | %s | %d → %d | %d | %d |\n", short(r.file), len(r.file.sessions), r.file.messages,
			r.whole, r.budget, pair(r.before), pair(r.after), pair(r.forced), r.leftBefore, r.leftAfter, r.epochs, r.summaries)
	}
	b.WriteString("\n## The replay\n\n| Transcript | Budget | Windows | Never compacted: changes | early | over | Compacted: changes | early | over | epochs | Under half |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	slices.SortFunc(m.replays, func(a, b *replayed) int { return order(a.file, b.file, a.budget, b.budget) })
	for _, r := range m.replays {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", short(r.file), r.budget, r.never.windows+r.as.windows,
			r.never.changed, r.never.early, len(r.never.over), r.as.changed, r.as.early, len(r.as.over), r.as.epochs, r.never.underused+r.as.underused)
	}
	return b.Bytes()
}

func order(a, b *file, budgetA, budgetB int) int {
	if c := strings.Compare(a.name, b.name); c != 0 {
		return c
	}
	return budgetA - budgetB
}

// short is a file's name without what all names have.
func short(f *file) string {
	name := strings.TrimSuffix(f.name, filepath.Ext(f.name))
	name, _, _ = strings.Cut(name, "-task-")
	return strings.TrimSuffix(name, ".attempt0")
}
