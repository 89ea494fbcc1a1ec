package main

import (
	"encoding/json"
	"fmt"
	"io"
)

type report struct {
	Machine  string  `json:"machine"`
	Options  string  `json:"options"`
	Levels   []Level `json:"levels"`
	Verified string  `json:"verified"`
}

func (r report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// last is the ratio at the last level with so many sessions.
func (r report) last(sessions int) float64 {
	ratio := 0.0
	for _, l := range r.Levels {
		if l.Sessions == sessions {
			ratio = l.Ratio
		}
	}
	return ratio
}

// print writes a level as rows of a Markdown table.
func (l Level) print(w io.Writer, first bool) {
	if first {
		fmt.Fprint(w, "| sessions | connections | side | appends/s | ratio | p50 ms | p99 ms | appends a transaction | CPU µs an append: all | Postgres | node | client | CPU ratio |\n",
			"|--:|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	}
	row := func(name string, s Side, ratio, cpuRatio string) {
		fmt.Fprintf(w, "| %d | %d | %s | %.0f | %s | %.2f | %.2f | %.1f | %.0f | %.0f | %.0f | %.0f | %s |\n", l.Sessions, l.Connections, name,
			s.PerSecond, ratio, s.P50Millis, s.P99Millis, s.PerTransaction, s.cpu(), s.PostgresCPU, s.NodeCPU, s.ClientCPU, cpuRatio)
	}
	row("HTTP", l.HTTP, fmt.Sprintf("**%.2f**", l.Ratio), fmt.Sprintf("%.2f", l.CPURatio))
	row("pgbench", l.Pgbench, "", "")
}

// printTail says what the table was measured on, and how well.
func (r report) printTail(w io.Writer) error {
	others := 0.0
	for _, l := range r.Levels {
		others = max(others, l.Others)
	}
	_, err := fmt.Fprintf(w, "\n%s; %s. Other programs used up to %.0f %% of the CPUs.\nVerified: %s.\n", r.Machine, r.Options, 100*others, r.Verified)
	return err
}
