package engine_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
)

func (b *bundle) fork(key, to string, at ...int64) contextengine.StepResult {
	b.t.Helper()
	var atSeq *int64
	if len(at) > 0 {
		atSeq = &at[0]
	}
	res, err := b.Fork(b.t.Context(), on(key), to, atSeq)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func same(t testing.TB, what string, got, want contextengine.AssembleResult) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(text(want), "\n"), strings.Split(text(got), "\n")); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
	if got.EstimatedTokens != want.EstimatedTokens || got.LeftOut != want.LeftOut {
		t.Errorf("%s: %d tokens, %d left out; want %d, %d", what, got.EstimatedTokens, got.LeftOut, want.EstimatedTokens, want.LeftOut)
	}
}

func TestForkShowsTheParentsWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 12)...)
	if res := b.compact("p", 3000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	b.ingest("p", talk(12, 3)...)
	head := b.ingest("p", user("now")).Head
	for _, budget := range []int{800, 3000, 100_000} {
		key := "f" + string(rune('0'+budget%7))
		at := b.window("p", budget)
		res := b.fork("p", key)
		if res.Head != 1 || res.Epoch != 1 {
			t.Errorf("%+v", res)
		}
		for range 2 { // cold, then cached
			got := b.window(key, budget)
			same(t, "fork", got, at)
			if got.Head != 1 || got.Epoch != 1 {
				t.Errorf("head %d, epoch %d", got.Head, got.Epoch)
			}
		}
	}
	// What either writes later the other does not show.
	b.ingest("p", assistant("only the parent"))
	b.ingest("f0", assistant("only the fork"))
	if p, f := text(b.window("p", 100_000)), text(b.window("f0", 100_000)); strings.Contains(p, "only the fork") || strings.Contains(f, "only the parent") ||
		!strings.HasSuffix(f, assistant("only the fork")) {
		t.Errorf("parent …%s\nfork …%s", p[len(p)-200:], f[len(f)-200:])
	}
	// At any seq, summaries of that moment included.
	for _, at := range []int64{1, 7, 20, 48, 49, 50, 55, head} {
		key := "at" + string(rune('a'+at%26))
		b.fork("p", key, at)
		same(t, key, b.window(key, 2000), b.windowAt("p", 2000, &at))
	}
}

func TestForkOfAForkAndItsOwnLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("a", talk(0, 6)...)
	b.fork("a", "b", 16)
	b.ingest("b", talk(10, 6)...)
	b.fork("b", "c")
	b.ingest("c", talk(20, 6)...)
	all := append(append(append([]string{}, talk(0, 4)...), talk(10, 6)...), talk(20, 6)...)
	if diff := cmp.Diff(all, strings.Split(text(b.window("c", 1_000_000)), "\n")); diff != "" {
		t.Fatal(diff)
	}
	before, parent := b.window("c", 100_000), b.window("b", 100_000)
	if res := b.compact("c", 2500); !res.Compacted || res.Epoch != 2 || res.Result.TokensAfter >= res.Result.TokensBefore {
		t.Fatalf("%+v", res)
	}
	small := b.window("c", 2500)
	if small.OverBudget != nil || small.Epoch != 2 {
		t.Errorf("%+v", small)
	}
	same(t, "the parent of a compacted fork", b.window("b", 100_000), parent)
	// The fork as of its own earlier seqs.
	at := int64(25)
	same(t, "as of before the compaction", b.windowAt("c", 100_000, &at), before)
	// Undo goes back to the fork's own first epoch and not further.
	if _, err := b.UndoCompaction(t.Context(), on("c"), nil); err != nil {
		t.Fatal(err)
	}
	same(t, "after the undo", b.window("c", 100_000), before)
	if _, err := b.UndoCompaction(t.Context(), on("c"), nil); !errors.Is(err, contextengine.ErrNothingToUndo) {
		t.Errorf("second undo: %v", err)
	}
	// A fork of a compacted fork has its summaries.
	b.compact("c", 2500)
	b.fork("c", "d")
	parent = b.window("c", 2500)
	same(t, "fork of a compacted fork", b.window("d", 2500), parent)
	b.ingest("d", talk(30, 8)...)
	if res := b.compact("d", 2000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	if d := b.window("d", 2000); d.OverBudget != nil || !strings.Contains(text(d), "summary") {
		t.Errorf("%s", text(d))
	}
	if _, err := b.Reset(t.Context(), on("d"), nil, ""); err != nil {
		t.Fatal(err)
	}
	if d := b.window("d", 2000); len(d.Messages) != 0 {
		t.Errorf("after a reset: %s", text(d))
	}
	same(t, "the parent after all that", b.window("c", 2500), parent)
}

func TestForkRewindsToItsPointAndNoFurther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 4)...)
	b.fork("p", "f", 10)
	start := b.window("f", 100_000)
	b.ingest("f", user("one"), assistant("two"), user("three"))
	rewind := func(key string, to int64) {
		t.Helper()
		if _, err := b.Rewind(t.Context(), on(key), to); err != nil {
			t.Fatal(err)
		}
	}
	full := b.window("f", 100_000)
	rewind("f", 1)
	same(t, "at the fork's point", b.window("f", 100_000), start)
	b.ingest("f", user("another way")) // seq 6
	if got := text(b.window("f", 100_000)); !strings.HasSuffix(got, user("another way")) || strings.Contains(got, `"one"`) {
		t.Errorf("…%s", got[len(got)-300:])
	}
	// Back to the abandoned branch, whose root is what was inherited.
	rewind("f", 4)
	same(t, "the abandoned branch", b.window("f", 100_000), full)
	b.fork("f", "g")
	same(t, "a fork of it", b.window("g", 100_000), full)
	// A reset hides what was inherited; going back before it brings it back.
	if _, err := b.Reset(t.Context(), on("g"), nil, ""); err != nil {
		t.Fatal(err)
	}
	b.ingest("g", user("fresh"))
	if got := text(b.window("g", 100_000)); got != user("fresh") {
		t.Errorf("%s", got)
	}
	rewind("g", 1)
	same(t, "before the reset", b.window("g", 100_000), full)
	keep := int64(3)
	if _, err := b.Reset(t.Context(), on("f"), &keep, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{assistant("two"), user("three")}, strings.Split(text(b.window("f", 100_000)), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestForkInheritsNoKeysButTheHistoryThatABootstrapKnows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keyed := contextengine.IngestParams{Session: on("p"), Message: json.RawMessage(user("a")), IdempotencyKey: "k1"}
	if _, err := b.Ingest(t.Context(), keyed); err != nil {
		t.Fatal(err)
	}
	b.ingest("p", assistant("b"))
	b.fork("p", "f")
	keyed.Session = on("f")
	keyed.Message = json.RawMessage(user("another payload"))
	if res, err := b.Ingest(t.Context(), keyed); err != nil || res.Duplicate || res.Seq != 2 {
		t.Errorf("%+v %v", res, err)
	}
	b.fork("p", "g")
	res, err := b.Bootstrap(t.Context(), contextengine.BootstrapParams{
		Session: on("g"), Messages: []json.RawMessage{json.RawMessage(user("a")), json.RawMessage(assistant("b")), json.RawMessage(user("c"))},
	})
	if err != nil || !res.Bootstrapped || res.ImportedMessages != 1 {
		t.Errorf("%+v %v", res, err)
	}
	if got := text(b.window("g", 1000)); got != user("a")+"\n"+assistant("b")+"\n"+user("c") {
		t.Errorf("%s", got)
	}
}

func TestForkIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.ingest("p", user("a"), user("b")).Head
	b.ingest("other", user("x"))
	var invalid *contextengine.InvalidError
	for name, c := range map[string]struct {
		parent, child string
		at            *int64
		want          func(error) bool
	}{
		"onto an existing key": {"p", "other", nil, func(err error) bool { return errors.Is(err, contextengine.ErrSessionExists) }},
		"onto itself":          {"p", "p", nil, func(err error) bool { return errors.Is(err, contextengine.ErrSessionExists) }},
		"of nobody":            {"nobody", "n", nil, func(err error) bool { return errors.Is(err, contextengine.ErrUnknownSession) }},
		"beyond the head":      {"p", "n", new(head + 1), func(err error) bool { return errors.As(err, &invalid) && invalid.Field == "atSeq" }},
		"at seq 0":             {"p", "n", new(int64(0)), func(err error) bool { return errors.As(err, &invalid) && invalid.Field == "atSeq" }},
		"without a key":        {"p", "", nil, func(err error) bool { return errors.As(err, &invalid) && invalid.Field == "newSessionKey" }},
		"with a NUL":           {"p", "a\x00", nil, func(err error) bool { return errors.As(err, &invalid) && invalid.Field == "newSessionKey" }},
		"too long":             {"p", strings.Repeat("k", 513), nil, func(err error) bool { return errors.As(err, &invalid) && invalid.Field == "newSessionKey" }},
	} {
		if _, err := b.Fork(t.Context(), on(c.parent), c.child, c.at); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.store.Session(t.Context(), "t", "n"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("a refused fork opened a session: %v", err)
	}
}

func TestAForkDoesNotDependOnTheParentsHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 40)...)
	b.fork("p", "f")
	s, err := b.store.Session(t.Context(), "t", "f")
	if err != nil {
		t.Fatal(err)
	}
	evs, err := b.store.Events(t.Context(), "t", s.SID, 0, 100)
	if err != nil || len(evs) != 1 {
		t.Errorf("%d events of its own, %v", len(evs), err)
	}
}

// TestAForksShortFormsNameSummariesByTheirID: by their places, whoever wrote them.
func TestAForksShortFormsNameSummariesByTheirID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 60)...)
	if res := b.compact("p", 12_000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	b.fork("p", "f")
	b.ingest("f", talk(60, 60)...)
	if res := b.compact("f", 12_000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	v, err := b.store.View(t.Context(), "t", "f", uuid.Nil, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, l := range v.State.Live {
		ids[strconv.FormatInt(l.Seq, 10)] = true
	}
	marks := 0
	for budget := 400; budget < 12_000; budget += 200 {
		for _, m := range b.window("f", budget).Messages {
			for _, mark := range shortMark.FindAllStringSubmatch(string(m), -1) {
				for id := range strings.SplitSeq(mark[1]+mark[2], ", ") {
					marks++
					if !ids[id] {
						t.Fatalf("budget %d names summary %s; there are %v: %s", budget, id, ids, mark[0])
					}
				}
			}
		}
	}
	if marks == 0 {
		t.Error("no window has a short form")
	}
}

var shortMark = regexp.MustCompile(`expand summary (\d+)|no room for the summaries ([\d, ]+)`)
