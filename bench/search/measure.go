package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// row is what one query took.
type row struct {
	query        *query
	hits         int
	ours, plain  taken
	plainMatches int64
	stages       string
}

// taken is what a run of equal queries took: on the clock, and of processors.
type taken struct{ p50, p99, cpu time.Duration }

// page is how many hits are asked for.
const page = 20

func (b *bench) measure(ctx context.Context, o *options) ([]row, error) {
	var out []row
	for i := range queries {
		q := &queries[i]
		if o.only != "" && q.name != o.only {
			continue
		}
		r := q.request
		r.Tenant, r.Limit = tenant, page
		one := row{query: q}
		b.stages.reset()
		var err error
		one.ours, err = b.timed(o.runs, func() error {
			a, err := b.searcher.Search(ctx, r)
			one.hits = len(a.Hits)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		for _, stage := range b.stages.order {
			one.stages += fmt.Sprintf(" %s %s", stage, ms(b.stages.took[stage]/time.Duration(o.runs+1)))
		}
		if q.plain != "" {
			one.plain, err = b.timed(o.runs, func() (err error) {
				one.plainMatches, err = b.plainSearch(ctx, q)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%s, plain: %w", q.name, err)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// timed runs fn once unmeasured, then n times.
func (b *bench) timed(n int, fn func() error) (taken, error) {
	if err := fn(); err != nil {
		return taken{}, err
	}
	took := make([]time.Duration, n)
	cpu := b.cpu()
	for i := range took {
		began := time.Now()
		if err := fn(); err != nil {
			return taken{}, err
		}
		took[i] = time.Since(began)
	}
	cpu = (b.cpu() - cpu) / time.Duration(n)
	slices.Sort(took)
	return taken{p50: took[n/2], p99: took[n*99/100], cpu: cpu}, nil
}

func (b *bench) print(w io.Writer, rows []row, stages bool) {
	fmt.Fprintf(w, "%d messages, %d sessions, %d parts, %d MB of text; PostgreSQL %s\n", b.messages, b.sessions, b.parts, b.bytes>>20, b.version)
	if b.indexedIn > 0 {
		fmt.Fprintf(w, "indexed in %s, %.0f messages/s\n", b.indexedIn.Round(time.Second), float64(b.messages)/b.indexedIn.Seconds())
	}
	fmt.Fprint(w, "\n| Query | p50 | p99 | CPU | plain: matches | p50 | CPU | CPU / plain |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |", r.query.name, ms(r.ours.p50), ms(r.ours.p99), ms(r.ours.cpu))
		if r.query.plain == "" {
			fmt.Fprint(w, " – | – | – | – |")
		} else {
			fmt.Fprintf(w, " %d | %s | %s | %.1f |", r.plainMatches, ms(r.plain.p50), ms(r.plain.cpu), r.ours.cpu.Seconds()/max(r.plain.cpu.Seconds(), 1e-4))
		}
		if stages {
			fmt.Fprintf(w, " %d hits;%s", r.hits, r.stages)
		}
		fmt.Fprintln(w)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
