package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	t     testing.TB
	store *store.Store
	*engine.Lossless
}

func setup(t testing.TB, mod ...func(*engine.Config)) *bundle {
	t.Helper()
	return node(t, testdb.New(t), mod...)
}

// verified holds all that a test did to its logs: what is stored beside them is
// what they say.
func verified(t testing.TB, st *store.Store) {
	t.Helper()
	_, err := verify.All(context.WithoutCancel(t.Context()), st, func(d verify.Difference) error {
		t.Errorf("verify: %+v", d)
		return nil
	}, func(verify.Progress) {})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
}

// node is one engine on a database that several may share.
func node(t testing.TB, url string, mod ...func(*engine.Config)) *bundle {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	t.Cleanup(func() { verified(t, st) })
	cfg := engine.Config{Log: st}
	for _, m := range mod {
		m(&cfg)
	}
	e := engine.NewLossless(cfg)
	t.Cleanup(func() {
		if err := e.Dispose(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &bundle{t: t, store: st, Lossless: e}
}

func on(key string) contextengine.Session { return contextengine.Session{Tenant: "t", SessionKey: key} }

func (b *bundle) ingest(key string, raws ...string) contextengine.IngestBatchResult {
	b.t.Helper()
	p := contextengine.IngestBatchParams{Session: on(key)}
	for _, r := range raws {
		p.Messages = append(p.Messages, json.RawMessage(r))
	}
	res, err := b.IngestBatch(b.t.Context(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func (b *bundle) window(key string, budget int) contextengine.AssembleResult {
	b.t.Helper()
	return b.windowAt(key, budget, nil)
}

func (b *bundle) windowAt(key string, budget int, asOf *int64) contextengine.AssembleResult {
	b.t.Helper()
	res, err := b.Assemble(b.t.Context(), contextengine.AssembleParams{Session: on(key), TokenBudget: &budget, AsOfSeq: asOf})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func (b *bundle) compact(key string, budget int) contextengine.CompactResult {
	b.t.Helper()
	res, err := b.Compact(b.t.Context(), contextengine.CompactParams{Session: on(key), TokenBudget: &budget, Force: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func text(res contextengine.AssembleResult) string {
	return string(bytes.Join(slicesOf(res.Messages), []byte("\n")))
}

func slicesOf(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i := range raws {
		out[i] = raws[i]
	}
	return out
}

func user(text string) string {
	return fmt.Sprintf(`{"role":"user","content":%s}`, quote(text))
}

func assistant(text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop"}`, quote(text))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// talk is a conversation of n turns with a marker and some prose in each.
func talk(from, n int) []string {
	var out []string
	for i := from; i < from+n; i++ {
		out = append(out,
			user(fmt.Sprintf("Please look at item marker%03d in /srv/app/file%03d.go. %s", i, i, strings.Repeat("It matters a lot for the release. ", 8))),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"/srv/app/file%03d.go"}}],"stopReason":"toolUse"}`, i, i),
			fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":%s}],"isError":false}`, i, quote(strings.Repeat(fmt.Sprintf("line of file %d\n", i), 40))),
			assistant(fmt.Sprintf("We decided to keep item marker%03d. %s", i, strings.Repeat("The reason is simple enough. ", 8))))
	}
	return out
}

func TestWindowIsTheStoredBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raws := []string{
		`{ "role":"user", "content":"a \u0000 \ud99c <&> é", "n":1.000 }`,
		`{"content":[{"text":"ok","type":"text"}],"role":"assistant"}`,
	}
	b.ingest("k", raws...)
	for range 2 { // cold, then cached
		res := b.window("k", 10_000)
		if diff := cmp.Diff(raws, strings.Split(text(res), "\n")); diff != "" {
			t.Error(diff)
		}
		if res.Head != 2 || res.Epoch != 1 || res.OverBudget != nil {
			t.Errorf("%+v", res)
		}
	}
	b.ingest("k", user("more"))
	if got := len(b.window("k", 10_000).Messages); got != 3 {
		t.Errorf("%d messages after one more, want 3", got)
	}
}

func TestUnknownSessionHasAnEmptyWindowAndIsNotMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.window("nobody", 100)
	if res.Messages == nil || len(res.Messages) != 0 || res.Head != 0 || res.Epoch != 1 || res.ContextProjection.Epoch != "1" {
		t.Errorf("%+v", res)
	}
	c := b.compact("nobody", 100)
	if !c.OK || c.Compacted || c.Reason == "" {
		t.Errorf("%+v", c)
	}
	if _, err := b.store.Session(t.Context(), "t", "nobody"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("session: %v", err)
	}
}

func TestCommittedTurnIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := contextengine.CommitTurnParams{
		Session: on("k"), AdvancementKey: "turn-1", Messages: []json.RawMessage{json.RawMessage(user("hi")), json.RawMessage(assistant("hello"))},
		RuntimeContext: &contextengine.RuntimeContext{TokenBudget: new(5000)},
	}
	first, err := b.CommitTurn(t.Context(), turn)
	if err != nil || first.Status != contextengine.TurnCommitted {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := b.CommitTurn(t.Context(), turn)
	if err != nil || again.Status != contextengine.TurnDuplicate || again.Head != first.Head {
		t.Errorf("%+v %v", again, err)
	}
	turn.Messages[1] = json.RawMessage(assistant("other"))
	var conflict *contextengine.IdempotencyConflictError
	if _, err := b.CommitTurn(t.Context(), turn); !errors.As(err, &conflict) || conflict.Key != "turn-1" {
		t.Errorf("other payload: %v", err)
	}
	if got := len(b.window("k", 10_000).Messages); got != 2 {
		t.Errorf("%d messages, want 2", got)
	}
	s, err := b.store.Session(t.Context(), "t", "k")
	if err != nil || s.TokenBudget != 5000 {
		t.Errorf("budget %d %v", s.TokenBudget, err)
	}
}

func TestAfterTurnStoresAGrowingDeltaOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var msgs []json.RawMessage
	for i := range 10 {
		msgs = append(msgs, json.RawMessage(user(fmt.Sprint("message ", i))))
	}
	deliver := func(n, pre int) int {
		t.Helper()
		res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
			Session: on("k"), Messages: msgs[:n], PrePromptMessageCount: pre, TokenBudget: new(100_000),
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.IngestedCount
	}
	got := []int{deliver(8, 0), deliver(8, 0), deliver(10, 0), deliver(10, 0), deliver(10, 10)}
	if diff := cmp.Diff([]int{8, 0, 2, 0, 0}, got); diff != "" {
		t.Error(diff)
	}
	if n := len(b.window("k", 100_000).Messages); n != 10 {
		t.Errorf("%d messages, want 10", n)
	}
}

func TestEqualMessagesWithoutKeysAllCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("yes"), assistant("ok"), user("yes"))
	b.ingest("k", user("yes"))
	after := func(pre int, raws ...string) {
		p := contextengine.AfterTurnParams{Session: on("k"), PrePromptMessageCount: pre}
		for _, r := range raws {
			p.Messages = append(p.Messages, json.RawMessage(r))
		}
		if _, err := b.AfterTurn(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	after(0, user("yes"), assistant("one"))
	after(0, user("yes"), assistant("two"))
	if n := len(b.window("k", 100_000).Messages); n != 8 {
		t.Errorf("%d messages, want 8", n)
	}
}

func TestBootstrapSkipsTheKnownPrefixAndRefusesAnotherHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	history := talk(0, 3)
	boot := func(raws ...string) contextengine.BootstrapResult {
		t.Helper()
		p := contextengine.BootstrapParams{Session: on("k")}
		for _, r := range raws {
			p.Messages = append(p.Messages, json.RawMessage(r))
		}
		res, err := b.Bootstrap(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if r := boot(history[:8]...); r.ImportedMessages != 8 || !r.Bootstrapped {
		t.Errorf("first: %+v", r)
	}
	if r := boot(history...); r.ImportedMessages != 4 || r.Head != 12 {
		t.Errorf("grown: %+v", r)
	}
	if r := boot(history...); r.ImportedMessages != 0 || r.Head != 12 {
		t.Errorf("again: %+v", r)
	}
	if r := boot(talk(50, 3)...); r.Bootstrapped || r.ImportedMessages != 0 || r.Reason == "" {
		t.Errorf("another history: %+v", r)
	}
}

func TestCompactionMakesTheWindowSmallerAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const budget = 8000
	b.ingest("k", talk(0, 40)...)
	full := b.window("k", 1_000_000)
	res := b.compact("k", budget)
	if !res.OK || !res.Compacted || res.Epoch != 2 || res.Result.TokensAfter >= res.Result.TokensBefore {
		t.Fatalf("%+v %+v", res, res.Result)
	}
	after := b.window("k", budget)
	if after.Epoch != 2 || after.OverBudget != nil || after.LeftOut != 0 || after.EstimatedTokens > budget {
		t.Errorf("after: %d tokens, %d left out, over %v", after.EstimatedTokens, after.LeftOut, after.OverBudget)
	}
	if after.EstimatedTokens >= full.EstimatedTokens {
		t.Errorf("%d tokens before, %d after", full.EstimatedTokens, after.EstimatedTokens)
	}
	if !strings.Contains(text(after), "marker039") {
		t.Error("the newest turn is gone")
	}
	if again := b.compact("k", budget); !again.OK || again.Compacted || again.Epoch != 2 {
		t.Errorf("second forced compaction: %+v", again)
	}
	// The window of every earlier moment is still what it was.
	head := full.Head
	if then := b.windowAt("k", 1_000_000, &head); text(then) != text(full) {
		t.Error("the window as of before the compaction differs")
	}
	if other := node(t, b.url()).window("k", budget); text(other) != text(after) {
		t.Error("another node shows another window")
	}
}

func TestFiveCompactionsInARowAndTheirUndoing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const budget = 6000
	for gen := range 5 {
		b.ingest("k", talk(gen*20, 20)...)
		if res := b.compact("k", budget); !res.Compacted {
			t.Fatalf("generation %d: %+v", gen, res)
		}
		w := b.window("k", budget)
		if w.OverBudget != nil || w.LeftOut != 0 || w.EstimatedTokens > budget {
			t.Fatalf("generation %d: %d tokens, %d left out, over %v", gen, w.EstimatedTokens, w.LeftOut, w.OverBudget)
		}
	}
	for gen := 5; gen > 0; gen-- {
		res, err := b.UndoCompaction(t.Context(), on("k"), nil)
		if err != nil {
			t.Fatalf("undo %d: %v", gen, err)
		}
		if want := int64(6 + 6 - gen); res.Epoch != want {
			t.Errorf("undo %d: epoch %d, want %d", gen, res.Epoch, want)
		}
	}
	if _, err := b.UndoCompaction(t.Context(), on("k"), nil); !errors.Is(err, contextengine.ErrNothingToUndo) {
		t.Errorf("one undo too many: %v", err)
	}
	if n := len(b.window("k", 1_000_000).Messages); n != 400 {
		t.Errorf("%d messages after undoing all, want 400", n)
	}
}

// TestUndoOfANamedCompaction: an epoch names the compaction that began it, and
// with it go those that came behind it.
func TestUndoOfANamedCompaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const budget = 6000
	windows := map[int64]string{}
	for gen := range 3 { // they begin the epochs 2, 3 and 4
		b.ingest("k", talk(gen*20, 20)...)
		windows[int64(gen+1)] = text(b.window("k", 1_000_000))
		if res := b.compact("k", budget); res.Epoch != int64(gen+2) {
			t.Fatalf("generation %d: %+v", gen, res)
		}
	}
	undo := func(epoch int64) (int64, error) {
		res, err := b.UndoCompaction(t.Context(), on("k"), &epoch)
		return res.Epoch, err
	}
	for _, none := range []int64{1, 5, 99} {
		if _, err := undo(none); !errors.Is(err, contextengine.ErrNothingToUndo) {
			t.Errorf("epoch %d: %v", none, err)
		}
	}
	if epoch, err := undo(4); err != nil || epoch != 5 || text(b.window("k", 1_000_000)) != windows[3] {
		t.Fatalf("the newest one by its epoch: %d, %v", epoch, err)
	}
	if _, err := undo(4); !errors.Is(err, contextengine.ErrNothingToUndo) {
		t.Errorf("one that is undone already: %v", err)
	}
	if epoch, err := undo(2); err != nil || epoch != 6 || len(b.window("k", 1_000_000).Messages) != 240 {
		t.Fatalf("the first one, and the one behind it: %d, %v", epoch, err)
	}
	if _, err := undo(3); !errors.Is(err, contextengine.ErrNothingToUndo) {
		t.Errorf("one that went with an earlier one: %v", err)
	}
}

func TestMessagesThatArriveDuringACompactionStayInTheTail(t *testing.T) {
	t.Parallel()
	b, finish := held(t)
	late := contextengine.IngestBatchParams{Session: on("k"), Messages: rawMessages(talk(30, 1)...), IdempotencyKeys: []string{"l0", "l1", "l2", "l3"}}
	told, err := b.IngestBatch(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	if res := finish(); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	w := b.window("k", 1_000_000)
	if !strings.HasSuffix(text(w), strings.Join(talk(30, 1), "\n")) {
		t.Error("the turn that arrived meanwhile is not the end of the window")
	}
	// The step comes behind it, and moves nothing.
	if diff := cmp.Diff(talk(0, 31), b.stored("k")); diff != "" {
		t.Errorf("the log:\n%s", diff)
	}
	again, err := b.IngestBatch(t.Context(), late)
	if err != nil || !cmp.Equal(again.Seqs, told.Seqs) || told.Seqs[0] != 121 {
		t.Errorf("told %v, again %v, %v", told.Seqs, again.Seqs, err)
	}
}

// TestAMessageOfAnEarlierEpochComesLate, behind a compaction: in order, and
// refused where its writer says which epoch it means.
func TestAMessageOfAnEarlierEpochComesLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.ingest("k", talk(0, 30)...).Head
	if res := b.compact("k", 6000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	first, at := int64(1), head
	p := contextengine.IngestParams{Session: on("k"), Message: json.RawMessage(user("late")), IdempotencyKey: "late"}
	p.ExpectedEpoch = &first
	var moved *contextengine.EpochConflictError
	if _, err := b.Ingest(t.Context(), p); !errors.As(err, &moved) || moved.Epoch != 2 {
		t.Errorf("in epoch 1: %v", err)
	}
	// What the engine wrote since makes no host stale.
	p.ExpectedEpoch, p.ExpectedHead = nil, &at
	res, err := b.Ingest(t.Context(), p)
	if err != nil || res.Seq <= head || res.Epoch != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	if w := b.window("k", 6000); !strings.HasSuffix(text(w), user("late")) || w.LeftOut != 0 {
		t.Errorf("%d left out, the late message is not the end of the window", w.LeftOut)
	}
	p.Message = json.RawMessage(user("later"))
	p.IdempotencyKey = "later"
	var stale *contextengine.StaleHeadError
	if _, err := b.Ingest(t.Context(), p); !errors.As(err, &stale) {
		t.Errorf("at the old place: %v", err)
	}
}

func TestWorkPlannedInAnEarlierEpochIsNotCommitted(t *testing.T) {
	t.Parallel()
	b, finish := held(t)
	if _, err := b.Rewind(t.Context(), on("k"), 100); err != nil {
		t.Fatal(err)
	}
	// It is planned anew on the branch that is active now.
	if res := finish(); !res.Compacted || res.Epoch != 3 {
		t.Errorf("%+v", res)
	}
	w := b.window("k", 1_000_000)
	for i := 25; i < 30; i++ {
		if strings.Contains(text(w), fmt.Sprintf("marker%03d", i)) {
			t.Errorf("marker %d of the abandoned branch is in the window", i)
		}
	}
}

func TestFailedSummarizerChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Summarizer = broken{} })
	b.ingest("k", talk(0, 30)...)
	before := b.window("k", 6000)
	if _, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on("k"), TokenBudget: new(6000), Force: true}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	after := b.window("k", 6000)
	if text(before) != text(after) || after.Epoch != 1 || after.Head != before.Head {
		t.Error("a failed compaction changed the session")
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 30)...)
	res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on("k"), TokenBudget: new(6000), Force: true, DryRun: true})
	if err != nil || res.Compacted || res.Result == nil || res.Result.TokensAfter >= res.Result.TokensBefore {
		t.Fatalf("%+v %v", res, err)
	}
	if w := b.window("k", 1_000_000); w.Head != 120 || w.Epoch != 1 {
		t.Errorf("head %d epoch %d", w.Head, w.Epoch)
	}
}

func TestResetHidesWhatWasBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 30)...)
	b.compact("k", 6000)
	if _, err := b.Reset(t.Context(), on("k"), nil, "new"); err != nil {
		t.Fatal(err)
	}
	if w := b.window("k", 6000); len(w.Messages) != 0 || w.Epoch != 3 {
		t.Errorf("after the reset: %d messages, epoch %d", len(w.Messages), w.Epoch)
	}
	b.ingest("k", user("hello again"))
	if w := b.window("k", 6000); len(w.Messages) != 1 {
		t.Errorf("%d messages, want 1", len(w.Messages))
	}
	if s, _ := b.store.Session(t.Context(), "t", "k"); s.LiveTokens() > 20 {
		t.Errorf("%d live tokens after a reset", s.LiveTokens())
	}
}

func TestResetThatKeepsATail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 10)...)
	if _, err := b.Reset(t.Context(), on("k"), new(int64(37)), "idle"); err != nil {
		t.Fatal(err)
	}
	w := b.window("k", 100_000)
	if diff := cmp.Diff(strings.Join(talk(9, 1), "\n"), text(w)); diff != "" {
		t.Error(diff)
	}
	if s, _ := b.store.Session(t.Context(), "t", "k"); s.LiveTokens() != int64(w.EstimatedTokens) {
		t.Errorf("%d live tokens, window of %d", s.LiveTokens(), w.EstimatedTokens)
	}
}

func TestRewindDropsABranchAndBringsItBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 5)...) // 1..20
	if _, err := b.Rewind(t.Context(), on("k"), 12); err != nil {
		t.Fatal(err)
	}
	b.ingest("k", talk(70, 1)...) // 22..25 on the new branch
	w := b.window("k", 100_000)
	want := strings.Join(append(talk(0, 3), talk(70, 1)...), "\n")
	if diff := cmp.Diff(want, text(w)); diff != "" {
		t.Error(diff)
	}
	if s, _ := b.store.Session(t.Context(), "t", "k"); s.LiveTokens() != int64(w.EstimatedTokens) {
		t.Errorf("%d live tokens, window of %d", s.LiveTokens(), w.EstimatedTokens)
	}
	if _, err := b.Rewind(t.Context(), on("k"), 20); err != nil {
		t.Fatal(err)
	}
	w = b.window("k", 100_000)
	if diff := cmp.Diff(strings.Join(talk(0, 5), "\n"), text(w)); diff != "" {
		t.Error(diff)
	}
	if s, _ := b.store.Session(t.Context(), "t", "k"); s.LiveTokens() != int64(w.EstimatedTokens) {
		t.Errorf("%d live tokens, window of %d", s.LiveTokens(), w.EstimatedTokens)
	}
}

func TestLiveTokensAgreeWithTheWindowAfterACompaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 40)...)
	b.compact("k", 8000)
	b.ingest("k", talk(40, 2)...)
	s, err := b.store.Session(t.Context(), "t", "k")
	if err != nil {
		t.Fatal(err)
	}
	if w := b.window("k", 1_000_000); s.LiveTokens() != int64(w.EstimatedTokens) {
		t.Errorf("%d live tokens, window of %d", s.LiveTokens(), w.EstimatedTokens)
	}
}

func (b *bundle) url() string { return b.store.URL() }

// held is a session whose forced compaction waits for its first summary; finish
// lets it go on and answers with its result.
func held(t *testing.T) (b *bundle, finish func() contextengine.CompactResult) {
	t.Helper()
	slow := &gate{entered: make(chan struct{}), release: make(chan struct{})}
	b = setup(t, func(c *engine.Config) { c.Summarizer = slow })
	b.ingest("k", talk(0, 30)...)
	done := make(chan contextengine.CompactResult, 1)
	go func() {
		res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on("k"), TokenBudget: new(6000), Force: true})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	<-slow.entered
	return b, func() contextengine.CompactResult {
		close(slow.release)
		return <-done
	}
}

// gate is the extractive summarizer, held until released.
type gate struct {
	entered, release chan struct{}
	summarize.Extractive
	once sync.Once
}

func (g *gate) Summarize(ctx context.Context, r summarize.Request) (summarize.Result, error) {
	g.once.Do(func() { close(g.entered) })
	select {
	case <-g.release:
	case <-ctx.Done():
		return summarize.Result{}, ctx.Err()
	}
	return g.Extractive.Summarize(ctx, r)
}

var errBroken = errors.New("provider is down")

type broken struct{}

func (broken) Name() string    { return "broken" }
func (broken) Version() string { return "1" }
func (broken) Summarize(context.Context, summarize.Request) (summarize.Result, error) {
	return summarize.Result{}, errBroken
}
