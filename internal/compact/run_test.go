package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource makes bodies up from the facts and counts how many it has out.
type fakeSource struct {
	entries map[int64]Entry
	mu      sync.Mutex
	largest int
}

func (f *fakeSource) Messages(_ context.Context, seqs []int64) ([]SourceMessage, error) {
	f.mu.Lock()
	f.largest = max(f.largest, len(seqs))
	f.mu.Unlock()
	var out []SourceMessage
	for _, s := range seqs {
		e := f.entries[s]
		m := message.Message{Role: e.Role, Flags: e.Flags, Timestamp: 1000 * s}
		text := strings.TrimSpace(strings.Repeat(fmt.Sprintf("words of %d ", s), e.Tokens/4))
		for _, id := range e.Calls {
			m.Blocks = append(m.Blocks, message.Block{Kind: message.ToolCall, Call: message.Call{ID: id, Name: "bash", Args: `{"command":"ls"}`}})
		}
		for _, id := range e.Results {
			m.Blocks = append(m.Blocks, message.Block{Kind: message.ToolResult, ResultOf: id, Text: text})
		}
		if len(m.Blocks) == 0 {
			m.Blocks = []message.Block{{Kind: message.Text, Text: text}}
		}
		out = append(out, SourceMessage{Seq: s, Message: m, Body: []byte(text)})
	}
	return out, nil
}

func (f *fakeSource) SummaryTexts(_ context.Context, seqs []int64) ([]SummaryText, error) {
	var out []SummaryText
	for _, s := range seqs {
		out = append(out, SummaryText{Seq: s, Text: "## Timeline\n- old " + fmt.Sprint(s), Tokens: 400})
	}
	return out, nil
}

type memDrafts struct {
	mu   sync.Mutex
	m    map[string]Draft
	fail error
}

func (d *memDrafts) Get(_ context.Context, key string) (Draft, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.m[key]
	return v, ok, d.fail
}

func (d *memDrafts) Put(ctx context.Context, key string, v Draft) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	if d.m == nil {
		d.m = map[string]Draft{}
	}
	d.m[key] = v
	return ctx.Err()
}

func (d *memDrafts) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.m)
}

// scripted answers by the given function; call counts from 1.
type scripted struct {
	mu     sync.Mutex
	calls  int
	answer func(ctx context.Context, call int, req summarize.Request) (string, error)
}

func (*scripted) Name() string    { return "scripted" }
func (*scripted) Version() string { return "1" }

func (s *scripted) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	text, err := s.answer(ctx, n, req)
	return summarize.Result{Text: text, Model: "m", PromptVersion: "p"}, err
}

func willing() *scripted {
	return &scripted{answer: func(_ context.Context, _ int, req summarize.Request) (string, error) { return good(req), nil }}
}

func good(req summarize.Request) string {
	if len(req.Children) > 0 {
		return fmt.Sprintf("of %d summaries", len(req.Children))
	}
	return fmt.Sprintf("of %d lines from %d", len(req.Lines), req.Lines[0].Seq)
}

func estimate(s string) int { return 20 + len(s)/4 }

func runInput(t *testing.T, budget int, s summarize.Summarizer) (RunInput, *fakeSource, *memDrafts) {
	t.Helper()
	var ses session
	for range 60 {
		ses.turn(60, 3, 500, 150)
	}
	src := &fakeSource{entries: map[int64]Entry{}}
	for _, e := range ses.entries {
		src.entries[e.Seq] = e
	}
	d := &memDrafts{}
	p := planOf(t, ses.input(budget, false))
	return RunInput{Plan: p, Source: src, Drafts: d, Summarizer: s, Estimate: estimate, Parallel: 4}, src, d
}

func TestRun(t *testing.T) {
	t.Parallel()
	in, src, _ := runInput(t, 16000, summarize.Extractive{})
	out, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if out.TokensAfter > in.Plan.TokensAfterMax || out.TokensBefore != in.Plan.TokensBefore {
		t.Errorf("%d tokens, promised %d", out.TokensAfter, in.Plan.TokensAfterMax)
	}
	if len(out.Summaries) != len(in.Plan.Steps) || out.Calls != len(in.Plan.Steps) {
		t.Errorf("%d summaries by %d calls for %d steps", len(out.Summaries), out.Calls, len(in.Plan.Steps))
	}
	if src.largest > 200 {
		t.Errorf("read %d messages at once", src.largest)
	}
	seqOf := func(step int) int64 { return int64(10000 + step) }
	bodies := out.Bodies(seqOf)
	known := map[int64]bool{}
	for i, b := range bodies {
		for _, c := range b.Children {
			if !known[c] {
				t.Errorf("summary %d comes before its child %d", i, c)
			}
		}
		known[seqOf(i+1)] = true
		if b.Text == "" || b.Tokens != estimate(b.Text) || b.Tokens >= b.SourceTokens || len(b.SourceHash) != 64 || b.Timestamp == 0 {
			t.Errorf("summary %d: %+v", i, b)
		}
	}
	for _, l := range out.LiveSeqs(seqOf) {
		if !known[l] {
			t.Errorf("%d is live and not written", l)
		}
	}
	again, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if again.Reused != len(in.Plan.Steps) || again.Calls != 0 {
		t.Errorf("a second run asked %d times", again.Calls)
	}
	for i := range again.Summaries {
		again.Summaries[i].Reused = false
	}
	if d := cmp.Diff(out.Summaries, again.Summaries); d != "" {
		t.Errorf("drafts differ (-first +second):\n%s", d)
	}
}

var errDown = errors.New("provider down")

// What was finished before a failure is not asked for again.
func TestFinishedDraftsSurviveAFailure(t *testing.T) {
	t.Parallel()
	s := &scripted{answer: func(_ context.Context, call int, req summarize.Request) (string, error) {
		if call > 5 {
			return "", errDown
		}
		return good(req), nil
	}}
	in, _, drafts := runInput(t, 16000, s)
	in.Parallel = 1
	_, err := Run(t.Context(), in)
	var se *StepError
	if !errors.Is(err, errDown) || !errors.As(err, &se) || se.Attempts != 2 {
		t.Fatalf("got %v", err)
	}
	if s.calls != 7 || drafts.len() != 5 {
		t.Errorf("%d calls, %d drafts; want 5 good ones and two attempts", s.calls, drafts.len())
	}
	s.answer = func(_ context.Context, _ int, req summarize.Request) (string, error) { return good(req), nil }
	out, err := Run(t.Context(), in)
	if err != nil || out.Reused != 5 {
		t.Errorf("reused %d: %v", out.Reused, err)
	}
}

func TestBadTextsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text func(summarize.Request) string
		want error
	}{
		"empty":  {func(summarize.Request) string { return "  " }, summarize.ErrEmpty},
		"larger": {func(r summarize.Request) string { return strings.Repeat("word ", r.SourceTokens) }, ErrNotSmaller},
		"long":   {func(r summarize.Request) string { return strings.Repeat("word", r.MaxTokens+1) }, summarize.ErrTooLong},
		"echo": {func(r summarize.Request) string {
			var b strings.Builder
			for _, l := range r.Lines {
				b.WriteString(l.Text + " ")
			}
			return b.String()[:4*(r.MaxTokens-25)]
		}, summarize.ErrEcho},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{answer: func(_ context.Context, _ int, req summarize.Request) (string, error) { return c.text(req), nil }}
			in, _, drafts := runInput(t, 16000, s)
			in.Parallel = 1
			_, err := Run(t.Context(), in)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if s.calls != 2 || drafts.len() != 0 {
				t.Errorf("%d calls, %d drafts", s.calls, drafts.len())
			}
		})
	}
}

func TestSecondAttemptCounts(t *testing.T) {
	t.Parallel()
	first := map[int64]bool{}
	var mu sync.Mutex
	s := &scripted{}
	s.answer = func(_ context.Context, _ int, req summarize.Request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(req.Lines) > 0 && !first[req.Lines[0].Seq] {
			first[req.Lines[0].Seq] = true
			return "", errDown
		}
		return good(req), nil
	}
	in, _, _ := runInput(t, 16000, s)
	if _, err := Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	s := &scripted{answer: func(context.Context, int, summarize.Request) (string, error) { panic("broken") }}
	in, _, _ := runInput(t, 16000, s)
	_, err := Run(t.Context(), in)
	if _, ok := errors.AsType[*PanicError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// An abort ends a run at once, even when the summarizer does not listen.
func TestAbort(t *testing.T) {
	t.Parallel()
	release, began := make(chan struct{}), make(chan struct{}, 64)
	var running sync.WaitGroup
	running.Add(1)
	s := &scripted{answer: func(_ context.Context, call int, req summarize.Request) (string, error) {
		if call == 1 {
			return good(req), nil
		}
		began <- struct{}{}
		<-release
		running.Done()
		return good(req), nil
	}}
	in, _, drafts := runInput(t, 16000, s)
	in.Parallel = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	abort := errors.New("user pressed stop")
	go func() {
		<-began
		cancel(abort)
	}()
	_, err := Run(ctx, in)
	if !errors.Is(err, abort) {
		t.Errorf("got %v", err)
	}
	if drafts.len() != 1 {
		t.Errorf("%d drafts, want the finished one", drafts.len())
	}
	close(release)
	running.Wait()
}

func TestStepTimeout(t *testing.T) {
	t.Parallel()
	s := &scripted{answer: func(ctx context.Context, _ int, _ summarize.Request) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}
	in, _, _ := runInput(t, 16000, s)
	in.StepTimeout = time.Millisecond
	_, err := Run(t.Context(), in)
	var se *StepError
	if !errors.As(err, &se) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDraftTroubleCostsNothing(t *testing.T) {
	t.Parallel()
	in, _, drafts := runInput(t, 16000, willing())
	drafts.fail = errDown
	out, err := Run(t.Context(), in)
	if err != nil || out.DraftErrors != 2*len(in.Plan.Steps) {
		t.Errorf("%d draft errors: %v", out.DraftErrors, err)
	}
}

func TestJunkDraftIsNotUsed(t *testing.T) {
	t.Parallel()
	in, _, drafts := runInput(t, 16000, willing())
	if _, err := Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for k := range drafts.m {
		drafts.m[k] = Draft{Text: " "}
	}
	out, err := Run(t.Context(), in)
	if err != nil || out.Reused != 0 {
		t.Errorf("reused %d: %v", out.Reused, err)
	}
}

func TestDraftKeyFollowsTheRequest(t *testing.T) {
	t.Parallel()
	base := summarize.Request{Level: 1, Lines: []summarize.Line{{Seq: 1, Role: summarize.User, Text: "a"}}, MaxTokens: 100}
	keys := map[string]string{}
	for name, edit := range map[string]func(*summarize.Request){
		"base": func(*summarize.Request) {},
		"text": func(r *summarize.Request) { r.Lines = []summarize.Line{{Seq: 1, Role: summarize.User, Text: "b"}} },
		"role": func(r *summarize.Request) { r.Lines = []summarize.Line{{Seq: 1, Role: summarize.System, Text: "a"}} },
		"max":  func(r *summarize.Request) { r.MaxTokens = 101 },
		"wish": func(r *summarize.Request) { r.Instructions = "short" },
		"lang": func(r *summarize.Request) { r.Language = "ja" },
	} {
		req := base
		edit(&req)
		k, err := draftKey(summarize.Extractive{}, req)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := keys[k]; ok {
			t.Errorf("%s and %s share a key", name, other)
		}
		keys[k] = name
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	block := func(k message.BlockKind, text string) message.Block { return message.Block{Kind: k, Text: text} }
	lines := linesOf([]SourceMessage{
		{Seq: 1, Message: message.Message{Role: message.User, Blocks: []message.Block{block(message.Text, " hi "), {Kind: message.Image}}}},
		{Seq: 2, Message: message.Message{Role: message.Assistant, Blocks: []message.Block{
			block(message.Thinking, "secret"), block(message.Text, "reading"),
			{Kind: message.ToolCall, Call: message.Call{ID: "a", Name: "read", Args: `{"path":"x"}`}},
		}}},
		{Seq: 3, Message: message.Message{Role: message.Result, Flags: message.IsError | message.UserText, Blocks: []message.Block{
			{Kind: message.ToolResult, ResultOf: "a", Text: strings.Repeat("x", 9000) + "END"}, block(message.Text, "and now"),
		}}},
		{Seq: 4, Message: message.Message{Role: message.User, Flags: message.Hidden, Blocks: []message.Block{block(message.Text, "hidden")}}},
		{Seq: 5, Message: message.Message{Role: message.User, Blocks: []message.Block{{Kind: message.Image}}}},
		{Seq: 6, Message: message.Message{Role: message.Result, ToolName: "shot", Blocks: []message.Block{
			{Kind: message.ToolResult, ResultOf: "a", Text: "taken"}, {Kind: message.Image}, {Kind: message.Image},
		}}},
	})
	var got []string
	for _, l := range lines {
		if len(l.Text) > 4000 || l.Seq == 3 && l.Role == summarize.ToolResult && !strings.HasSuffix(l.Text, "END") {
			t.Errorf("line of %d bytes", len(l.Text))
		}
		got = append(got, fmt.Sprintf("%d %s %s %.10s %v", l.Seq, l.Role, l.Tool, l.Text, l.Error))
	}
	want := []string{
		"1 user  hi (an ima false", "2 assistant  reading false", `2 tool call read {"path":"x false`,
		"3 tool result read xxxxxxxxxx true", "3 user  and now false", "5 user  (an image) false",
		"6 tool result shot taken (2 i false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}
