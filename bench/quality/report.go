package main

import (
	"fmt"
	"strings"
)

// report is what a run measured.
type report struct {
	conversations, turns, transcripts int
	search                            []recall
	talks, agents                     []line
}

// verdict holds the run to what the project claims: every window of an engine
// is valid and within its budget, and search is no worse than plain BM25.
func (r *report) verdict() error {
	for _, l := range append(append([]line(nil), r.talks...), r.agents...) {
		if l.name != truncateOldest && l.valid != l.windows {
			return fmt.Errorf("%s at %d: %d of %d windows are not valid", l.name, l.budget, l.windows-l.valid, l.windows)
		}
	}
	if len(r.search) > 0 {
		ours := r.search[len(r.search)-1]
		for _, plain := range r.search[:2] {
			for i := range depths {
				if ours.found[i] < plain.found[i] {
					return fmt.Errorf("search finds less than %s among the first %d", plain.name, depths[i])
				}
			}
		}
	}
	return nil
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Quality\n\nWhat a window, or a search, still knows of a long past. **Extractive, no model**: summaries are made by the built-in extractive\n" +
		"summarizer, searches ask no model, and an answer counts as known when a turn that holds it is shown verbatim or found. Written by a\n" +
		"passing run of `make bench-quality`; do not edit.\n")
	if len(r.search) > 0 {
		fmt.Fprintf(&b, "\n## Search\n\n%d questions on %d conversations of LoCoMo (%d turns, %s): a turn that answers is among the first\n5, 10, 20 hits. The weights of the rank were chosen on %s; held out are the others.\n\n",
			r.search[0].all, r.conversations, r.turns, "CC BY-NC 4.0, not part of this project", strings.Join(tunedOn, " and "))
		b.WriteString("| | @5 | @10 | @20 | @10, held out | ms a search |\n|---|---:|---:|---:|---:|---:|\n")
		for _, s := range r.search {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.name, percent(s.found[0], s.all), percent(s.found[1], s.all), percent(s.found[2], s.all),
				percent(s.heldOut, s.heldOutAll), mean(s))
		}
	}
	if len(r.talks) > 0 {
		b.WriteString("\n## Windows on LoCoMo\n\nEach conversation is played message by message; after every 10 messages the window is looked at, the last one is asked the questions.\n\n")
		b.WriteString("| Budget | Method | Valid, within budget | Tokens | Answer shown | Shown, or found @10 | Prefix kept | Compactions |\n|---:|---|---:|---:|---:|---:|---:|---:|\n")
		for _, l := range r.talks {
			fmt.Fprintf(&b, "| %d | %s | %d/%d | %d | %s | %s | %s | %d |\n", l.budget, l.name, l.valid, l.windows, l.tokens/max(l.windows, 1),
				percent(l.shown, l.all), percent(l.shownOrFound, l.all), percent(l.same, l.whole), l.compactions)
		}
	}
	if len(r.agents) > 0 {
		fmt.Fprintf(&b, "\n## Windows on transcripts\n\n%d real transcripts of agents with %d messages or more, played the same way. Identifiers are URLs, paths, hashes, versions and names\n"+
			"of several parts anywhere in the past, tool results included: the share of those said so far that a window holds, in the mean over all\n"+
			"windows, and the share of all that the last one holds. (One session ends with the output of `find .`: 897 hashes of a `.git` directory in\n"+
			"one message of 27,559 tokens, 43 %% of all identifiers, which truncating shows whole where it fits and engines cut to an eighth of the budget.)\n"+
			"Truncating counts tokens as the engines do, with their factor for Claude models, and shows a host's rows as they are: aborted and empty\n"+
			"ones, which providers refuse, make its windows invalid.\n\n", r.transcripts, leastMessages)
		b.WriteString("| Budget | Method | Valid, within budget | Tokens | Identifiers, mean | Identifiers, last window | Prefix kept | Compactions |\n|---:|---|---:|---:|---:|---:|---:|---:|\n")
		for _, l := range r.agents {
			fmt.Fprintf(&b, "| %d | %s | %d/%d | %d | %.1f %% | %s | %s | %d |\n", l.budget, l.name, l.valid, l.windows, l.tokens/max(l.windows, 1),
				100*l.keptShares/float64(max(l.idWindows, 1)), percent(l.kept, l.ids), percent(l.same, l.whole), l.compactions)
		}
	}
	return b.String()
}

func percent(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func mean(r recall) string {
	if r.took == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(r.took.Microseconds())/1000/float64(r.all))
}
