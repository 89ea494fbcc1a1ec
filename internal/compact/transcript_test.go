package compact

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/window"
)

// transcript is a session over a real log.
type transcript struct {
	session
	messages  map[int64]SourceMessage
	summaries map[int64]SummaryText
}

func (s *transcript) Messages(_ context.Context, seqs []int64) ([]SourceMessage, error) {
	var out []SourceMessage
	for _, q := range seqs {
		out = append(out, s.messages[q])
	}
	return out, nil
}

func (s *transcript) SummaryTexts(_ context.Context, seqs []int64) ([]SummaryText, error) {
	var out []SummaryText
	for _, q := range seqs {
		out = append(out, s.summaries[q])
	}
	return out, nil
}

// roughly is a stand-in for the real estimator.
func roughly(m message.Message) int {
	n := 8
	for _, b := range m.Blocks {
		n += (len(b.Text) + len(b.Call.Name) + len(b.Call.Args) + 3) / 4
		if b.Kind == message.Image {
			n += 1500
		}
	}
	return n
}

func (s *transcript) append(t *testing.T, body []byte) {
	m, err := message.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	s.seq++
	s.messages[s.seq] = SourceMessage{Seq: s.seq, Message: m, Body: body}
	s.entries = append(s.entries, Entry{Seq: s.seq, Facts: m.Facts(roughly)})
}

func (s *transcript) commit(out Outcome) {
	seqOf := func(step int) int64 { return s.seq + int64(step) }
	known := map[int64]SummaryRef{}
	for _, l := range s.live {
		known[l.Seq] = l
	}
	for i, b := range out.Bodies(seqOf) {
		seq := seqOf(i + 1)
		known[seq] = SummaryRef{Seq: seq, Level: b.Level, Tokens: b.Tokens, SourceTokens: b.SourceTokens, Covers: b.Covers}
		s.summaries[seq] = SummaryText{Seq: seq, Text: b.Text, Tokens: b.Tokens, Covers: b.Covers, Timestamp: b.Timestamp}
		for _, r := range b.Sources {
			for q := r.From; q <= r.To; q++ {
				s.sources[q] = true
			}
		}
	}
	live := out.LiveSeqs(seqOf)
	s.live = nil
	for _, q := range live {
		s.live = append(s.live, known[q])
	}
	s.seq += int64(len(out.Summaries)) + 1
	s.compacted = s.seq
}

// TestRealTranscripts grows the real sessions under several budgets and
// compacts whenever they owe it.
func TestRealTranscripts(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS names no directory of transcripts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", dir, err)
	}
	for _, file := range files {
		if k := filepath.Base(filepath.Dir(file)); k != "pi" && k != "openclaw" {
			continue
		}
		for _, budget := range []int{2000, 8000, 32000, 128000} {
			t.Run(fmt.Sprintf("%s-%d", filepath.Base(file), budget), func(t *testing.T) { grow(t, file, budget) })
		}
	}
}

func grow(t *testing.T, file string, budget int) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := transcript{messages: map[int64]SourceMessage{}, summaries: map[int64]SummaryText{}}
	s.sources = map[int64]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	compactions, steps, deepest, wide := 0, 0, 0, 0
	for lines.Scan() {
		var entry struct{ Message json.RawMessage }
		if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.Message == nil {
			continue
		}
		s.append(t, entry.Message)
		in := s.input(budget, false)
		p, stop := NewPlan(in)
		if stop != "" {
			continue
		}
		out, err := Run(t.Context(), RunInput{
			Plan: p, Source: &s, Drafts: &memDrafts{}, Summarizer: summarize.Extractive{},
			Estimate: func(text string) int {
				return (len(window.RenderSummary(message.OpenClaw, window.Summary{TokensBefore: 1 << 20, Timestamp: 1 << 41}, text))+3)/4 + 8
			},
		})
		if err != nil {
			t.Fatalf("after message %d: %v (plan %+v)", s.seq, err, p)
		}
		s.commit(out)
		compactions++
		steps += len(out.Summaries)
		w := s.window(budget)
		wide = max(wide, w.Tokens)
		// Only what must be shown may pass the budget.
		if out.TokensAfter > budget && w.Over == nil && w.TrimFrom == 0 {
			t.Errorf("after message %d: %d tokens in a budget of %d", s.seq, out.TokensAfter, budget)
		}
		if w.Tokens > out.TokensAfter {
			t.Errorf("after message %d: the window has %d tokens, the outcome said %d", s.seq, w.Tokens, out.TokensAfter)
		}
		for _, l := range s.live {
			deepest = max(deepest, l.Level)
		}
	}
	var last strings.Builder
	for _, l := range s.live {
		fmt.Fprintf(&last, " L%d:%d", l.Level, l.Tokens)
	}
	t.Logf("%d messages, %d compactions, %d summaries, depth %d, widest %d, live%s", len(s.messages), compactions, steps, deepest, wide, last.String())
}

func (s *transcript) window(budget int) window.Plan {
	in := window.Input{
		Params:  window.Params{Budget: budget, Dialect: message.OpenClaw},
		Entries: s.input(budget, false).Entries,
	}
	for _, l := range s.live {
		in.Summaries = append(in.Summaries, window.Summary{Seq: l.Seq, Tokens: l.Tokens, Level: l.Level})
	}
	return window.Build(in)
}
