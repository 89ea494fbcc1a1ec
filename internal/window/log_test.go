package window

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// testLog writes a path entry by entry.
type testLog struct {
	entries []Entry
	offset  int64
}

func (l *testLog) add(f message.Facts) int64 {
	if f.Flags.Has(message.Hidden) {
		f.Tokens = 0
	}
	l.offset += int64(f.Tokens)
	seq := int64(1)
	if n := len(l.entries); n > 0 {
		seq = l.entries[n-1].Seq + 1
	}
	l.entries = append(l.entries, Entry{Seq: seq, Facts: f, Offset: l.offset})
	return seq
}

func (l *testLog) user(tokens int, flags ...message.Flags) int64 {
	return l.add(message.Facts{Role: message.User, Tokens: tokens, Flags: join(flags)})
}

func (l *testLog) say(tokens int, flags ...message.Flags) int64 {
	return l.add(message.Facts{Role: message.Assistant, Tokens: tokens, Flags: join(flags)})
}

func (l *testLog) note(tokens int) int64 {
	return l.add(message.Facts{Role: message.Note, Tokens: tokens, Flags: message.Cuttable})
}

func (l *testLog) call(tokens int, ids ...string) int64 {
	return l.add(message.Facts{Role: message.Assistant, Tokens: tokens, Calls: ids})
}

func (l *testLog) result(tokens int, ids ...string) int64 {
	return l.add(message.Facts{Role: message.Result, Tokens: tokens, Results: ids, Flags: message.Cuttable})
}

func join(flags []message.Flags) (f message.Flags) {
	for _, x := range flags {
		f |= x
	}
	return f
}

// input is a window's input with a budget for everything.
func (l *testLog) input() Input {
	return Input{Epoch: 1, Params: Params{Budget: 1 << 30, PolicyHash: "p"}, Entries: l.entries}
}

func (l *testLog) within(budget int) Input {
	in := l.input()
	in.Budget = budget
	return in
}

// seqs are the items' seqs, summaries as negative numbers.
func seqs(p Plan) []int64 {
	out := []int64{}
	for _, it := range p.Items {
		if it.Kind == KindSummary {
			out = append(out, -it.Seq)
			continue
		}
		out = append(out, it.Seq)
	}
	return out
}

// reasons are the reasons of what is left out, by seq.
func reasons(p Plan) map[int64]Reason {
	out := map[int64]Reason{}
	for _, lo := range p.LeftOut {
		out[lo.Seq] = lo.Reason
	}
	return out
}

// mess draws a log as unruly as hosts write them: ids that repeat, results
// that are missing, late, doubled or of nobody, heartbeats, hidden messages.
func mess(t *rapid.T, steps int, size *rapid.Generator[int]) *testLog {
	l := &testLog{}
	n := rapid.IntRange(0, steps).Draw(t, "steps")
	anthropic := rapid.Bool().Draw(t, "multi")
	var open []string
	id := func() string {
		if rapid.IntRange(0, 4).Draw(t, "fresh") > 0 {
			return fmt.Sprintf("c%d", len(l.entries))
		}
		return rapid.SampledFrom([]string{"a", "b", "call_1"}).Draw(t, "id")
	}
	for range n {
		tokens := size.Draw(t, "tokens")
		switch rapid.IntRange(0, 19).Draw(t, "what") {
		case 0, 1, 2:
			l.user(tokens)
		case 3, 4, 5:
			l.say(tokens)
		case 6, 7, 8, 9:
			ids := []string{id()}
			for rapid.IntRange(0, 2).Draw(t, "more") == 0 {
				ids = append(ids, id())
			}
			l.call(tokens, ids...)
			open = append(open, ids...)
		case 10, 11, 12, 13, 14:
			if len(open) == 0 {
				l.say(tokens)
				continue
			}
			i := max(len(open)-1-rapid.IntRange(0, 3).Draw(t, "which"), 0)
			ids := []string{open[i]}
			if anthropic && i+1 < len(open) && rapid.Bool().Draw(t, "two") {
				ids = append(ids, open[i+1])
			}
			l.result(tokens, ids...)
			if anthropic && rapid.IntRange(0, 5).Draw(t, "text") == 0 {
				l.entries[len(l.entries)-1].Flags |= message.UserText
			}
			if rapid.IntRange(0, 3).Draw(t, "answered") > 0 {
				open = append(open[:i:i], open[i+1:]...)
			}
		case 15:
			l.result(tokens, "nobody")
			if anthropic && rapid.Bool().Draw(t, "orphan text") {
				l.entries[len(l.entries)-1].Flags |= message.UserText
			}
		case 16:
			l.user(20, message.Heartbeat)
			if rapid.Bool().Draw(t, "ok") {
				l.say(5, message.Heartbeat)
			}
		case 17:
			switch rapid.IntRange(0, 2).Draw(t, "hidden") {
			case 0:
				l.user(0, message.Hidden)
			case 1:
				l.say(0, message.Hidden|message.Aborted)
			case 2:
				ids := []string{id()}
				l.add(message.Facts{Role: message.Assistant, Flags: message.Hidden, Calls: ids})
				open = append(open, ids...)
			}
		case 18:
			l.note(tokens)
		case 19:
			l.say(tokens, message.Aborted)
		}
	}
	return l
}

var dialects = []message.Dialect{message.OpenClaw, message.OpenAI, message.Anthropic}

// messyInput draws a whole input.
func messyInput(t *rapid.T, steps int) Input {
	size := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(1, 400), rapid.IntRange(1, 6000))
	in := mess(t, steps, size).input()
	in.Dialect = rapid.SampledFrom(dialects).Draw(t, "dialect")
	in.FactorMilli = rapid.SampledFrom([]int{0, 1000, 1137, 730, 2500}).Draw(t, "factor")
	in.Summaries = summaries(t)
	in.Budget = rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, 4000), rapid.IntRange(1, 40000)).Draw(t, "budget")
	if rapid.Bool().Draw(t, "prune") {
		in.Prune = Pruning{
			Mode:           rapid.SampledFrom([]PruneMode{PruneTrim, PruneClear}).Draw(t, "mode"),
			KeepAssistants: rapid.IntRange(1, 4).Draw(t, "kept"),
			StepTokens:     rapid.Int64Range(1, 3000).Draw(t, "step"),
			TrimOver:       rapid.IntRange(1, 1500).Draw(t, "trim over"),
			TrimTo:         rapid.IntRange(1, 800).Draw(t, "trim to"),
			TrimShare:      rapid.Int64Range(1, 1000).Draw(t, "trim share"),
			ClearShare:     rapid.Int64Range(1, 1000).Draw(t, "clear share"),
		}
	}
	return in
}

func summaries(t *rapid.T) []Summary {
	n := rapid.IntRange(0, 3).Draw(t, "summaries")
	var out []Summary
	for i := range n {
		out = append(out, Summary{
			Seq: int64(100000 + i), Tokens: rapid.IntRange(1, 800).Draw(t, "tokens"),
			Level: rapid.IntRange(1, 3).Draw(t, "level"),
		})
	}
	return out
}
