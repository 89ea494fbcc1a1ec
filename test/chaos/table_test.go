package chaos

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// caught is a bug that the harness found, by the fault under which it showed.
type caught struct{ under, what, commit string }

// catches are all of them.
var catches = []caught{
	{
		"Postgres takes no connections (SIGSTOP of its postmaster)",
		"A page of a transcript whose commit lost its connection was answered with 500 instead of 503 with `Retry-After`: a client took a page that was stored for refused.",
		"store: tell a connection that broke within a commit from a fault of our own",
	},
}

// report tells what a run did.
func (r *run) report(all []fault) {
	r.t.Logf("%d writes acknowledged, %d requests sent again, %d refused; %d resets, rewinds and undos, %d leases, %d recorded turns",
		r.acked.Load(), r.again.Load(), r.refused.Load(), r.stepped.Load(), r.leases.Load(), r.replayed.Load())
	r.t.Logf("%d sessions, %d events and %d calls checked, %d erased, %d resumed", len(r.old), r.checked.events, r.checked.calls, len(r.erased), r.checked.resumed)
	r.t.Logf("\n%s", r.rows(all))
}

func (r *run) rows(all []fault) string {
	var b strings.Builder
	b.WriteString("| Fault | Times | Found |\n|---|---|---|\n")
	for i, f := range all {
		var found []string
		for n, c := range catches {
			if c.under == f.name {
				found = append(found, fmt.Sprint(n+1))
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", f.name, r.times[i]-r.missed[i], orDash(strings.Join(found, ", ")))
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

const (
	begin = "<!-- begin: written by a run with -table -->\n"
	end   = "<!-- end -->\n"
	page  = "../../docs/chaos.md"
)

// write puts the run into the docs.
func (r *run) write(all []fault) {
	raw, err := os.ReadFile(page)
	if err != nil {
		r.t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		r.t.Fatal("docs/chaos.md has no place for the table")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d cycles of seed %d in %s: %d writes acknowledged, %d requests sent again, %d writes refused for a stale head, a stale lease or an erasure; "+
		"%d resets, rewinds and undos, %d leases, %d recorded turns. %d sessions, of which %d were erased under load; of the others %d events and %d calls were checked. "+
		"Lost, doubled, reordered, leaked: 0.\n\n",
		*cycles, *seed, time.Since(r.began).Round(time.Second), r.acked.Load(), r.again.Load(), r.refused.Load(), r.stepped.Load(), r.leases.Load(), r.replayed.Load(),
		len(r.old)+len(r.erased), len(r.erased), r.checked.events, r.checked.calls)
	b.WriteString(r.rows(all))
	for i, c := range catches {
		if i == 0 {
			b.WriteString("\nFound and fixed:\n\n")
		}
		fmt.Fprintf(&b, "%d. %s (`%s`)\n", i+1, c.what, c.commit)
	}
	if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		r.t.Fatal(err)
	}
}
