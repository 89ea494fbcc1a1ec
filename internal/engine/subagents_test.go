package engine_test

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
	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

func (b *bundle) prepare(parent, child string, mode contextengine.ContextMode) *contextengine.SubagentPreparation {
	b.t.Helper()
	p, err := b.PrepareSubagentSpawn(b.t.Context(), contextengine.PrepareSubagentSpawnParams{
		Session: on(parent), ChildSessionKey: child, ContextMode: mode,
	})
	if err != nil || p == nil || p.PreparationID == "" {
		b.t.Fatalf("%+v %v", p, err)
	}
	return p
}

func (b *bundle) sid(key string) uuid.UUID {
	b.t.Helper()
	s, err := b.store.Session(b.t.Context(), "t", key)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.SID
}

func calling(ids ...string) string {
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"exec","arguments":{}}`, id))
	}
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `],"stopReason":"toolUse"}`
}

func answering(id, text string) string {
	return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"exec","content":[{"type":"text","text":%q}],"isError":false}`, id, text)
}

func TestIsolatedSubagentSeesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 2)...)
	for i, mode := range []contextengine.ContextMode{"", contextengine.ContextIsolated} {
		child := fmt.Sprint("c", i)
		b.prepare("p", child, mode)
		if res := b.window(child, 1000); len(res.Messages) != 0 || res.Epoch != 1 {
			t.Errorf("%s", text(res))
		}
		b.ingest(child, user("task"))
		if got := text(b.window(child, 1000)); got != user("task") {
			t.Errorf("%s", got)
		}
	}
}

// The parent's call that spawned the child can't be answered by the child.
func TestForkedSubagentSeesTheParentsWindowWithoutItsOpenCall(t *testing.T) {
	t.Parallel()
	done := []string{user("start"), calling("a"), answering("a", "ok"), assistant("fine"), user("spawn it")}
	for name, c := range map[string]struct{ log, want []string }{
		"no call":        {done, done},
		"one open":       {append(done[:5:5], calling("b")), done},
		"half answered":  {append(done[:5:5], calling("b", "c"), answering("c", "part")), done},
		"all answered":   {append(done[:5:5], calling("b"), answering("b", "x")), append(done[:5:5], calling("b"), answering("b", "x"))},
		"dead, not open": {append(done[:5:5], calling("b"), user("never mind")), append(done[:5:5], user("never mind"))},
		"a late result": {
			[]string{user("start"), calling("a"), user("meanwhile"), calling("b", "c"), answering("b", "part"), answering("a", "late")},
			[]string{user("start"), calling("a"), answering("a", "late"), user("meanwhile")},
		},
		"nothing but the call": {[]string{calling("b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.ingest("p", c.log...)
			b.prepare("p", "c", contextengine.ContextFork)
			var got []string
			for _, m := range b.window("c", 100_000).Messages {
				got = append(got, string(m))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
			s, err := b.store.Session(t.Context(), "t", "c")
			if err != nil {
				t.Fatal(err)
			}
			if want := b.window("c", 100_000).EstimatedTokens; int64(want) != s.LiveTokens() && name != "dead, not open" {
				t.Errorf("the session counts %d tokens, its window %d", s.LiveTokens(), want)
			}
			// The parent goes on with its call, the child with its task.
			b.ingest("p", answering("b", "spawned"))
			b.ingest("c", user("task"), assistant("result"))
			want := slices.Concat(got, []string{user("task"), assistant("result")})
			if diff := cmp.Diff(want, strings.Split(text(b.window("c", 100_000)), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPreparingAgainAnswersTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", user("a"))
	b.ingest("q", user("b"))
	first := b.prepare("p", "c", contextengine.ContextFork)
	if again := b.prepare("p", "c", contextengine.ContextFork); again.PreparationID != first.PreparationID {
		t.Errorf("%q, then %q", first.PreparationID, again.PreparationID)
	}
	refused := func(why, parent, child string, mode contextengine.ContextMode) {
		t.Helper()
		_, err := b.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{Session: on(parent), ChildSessionKey: child, ContextMode: mode})
		if !errors.Is(err, contextengine.ErrSessionExists) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("another parent", "q", "c", contextengine.ContextFork)
	refused("another mode", "p", "c", contextengine.ContextIsolated)
	refused("itself", "p", "p", contextengine.ContextIsolated)
	refused("somebody's session", "p", "q", contextengine.ContextIsolated)
	b.ingest("c", user("begun"))
	refused("a child that has begun", "p", "c", contextengine.ContextFork)
	b.fork("p", "f")
	refused("a fork", "p", "f", contextengine.ContextFork)
}

func TestSubagentParametersAreHeldToTheContract(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", user("a"))
	for field, p := range map[string]contextengine.PrepareSubagentSpawnParams{
		"childSessionKey": {Session: on("p")},
		"childSessionId":  {Session: on("p"), ChildSessionKey: "c", ChildSessionID: "a\x00"},
		"contextMode":     {Session: on("p"), ChildSessionKey: "c", ContextMode: "all"},
		"ttlMs":           {Session: on("p"), ChildSessionKey: "c", TTLMs: -1},
		"sessionKey":      {ChildSessionKey: "c"},
	} {
		var invalid *contextengine.InvalidError
		if _, err := b.PrepareSubagentSpawn(t.Context(), p); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := b.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{Session: on("nobody"), ChildSessionKey: "c"})
	if !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("of nobody: %v", err)
	}
	if _, err := b.store.Session(t.Context(), "t", "c"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("a refused preparation opened a session: %v", err)
	}
}

func TestRollbackLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 8)...)
	b.compact("p", 2000)
	for _, mode := range []contextengine.ContextMode{contextengine.ContextIsolated, contextengine.ContextFork} {
		prep := b.prepare("p", "c", mode)
		sid := b.sid("c")
		b.window("c", 5000)
		if err := prep.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.store.Session(t.Context(), "t", "c"); !errors.Is(err, contextengine.ErrUnknownSession) {
			t.Errorf("session: %v", err)
		}
		if evs, err := b.store.Events(t.Context(), "t", sid, 0, 10); err != nil || len(evs) != 0 {
			t.Errorf("%d events stay, %v", len(evs), err)
		}
		if _, ok, err := b.store.DescentOf(t.Context(), "t", sid, "c"); ok || err != nil {
			t.Errorf("the lineage stays, %v", err)
		}
		if err := prep.Rollback(t.Context()); err != nil {
			t.Errorf("second rollback: %v", err)
		}
		if res := b.window("c", 5000); len(res.Messages) != 0 || res.Head != 0 {
			t.Errorf("a rolled-back key has a window: %+v", res)
		}
	}
	// The key is free: for another parent, and for a session of its own.
	b.ingest("q", user("x"))
	b.prepare("q", "c", contextengine.ContextIsolated)
	if ok, err := b.RollbackSubagent(t.Context(), on("c"), "c"); !ok || err != nil {
		t.Errorf("by the child itself: %v %v", ok, err)
	}
	if res := b.ingest("c", user("mine")); res.Head != 1 {
		t.Errorf("head %d of a new session", res.Head)
	}
}

func TestRollbackKeepsWhatHasBegunOrIsNotTheirs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", user("a"))
	b.ingest("q", user("b"))
	b.prepare("p", "wrote", contextengine.ContextIsolated)
	b.ingest("wrote", user("x"))
	b.prepare("p", "forked", contextengine.ContextFork)
	b.fork("forked", "grandchild")
	b.prepare("p", "fresh", contextengine.ContextIsolated)
	b.fork("p", "fork")
	for _, c := range []struct {
		by, child string
		err       error
	}{
		{"p", "wrote", contextengine.ErrSubagentBegan},
		{"wrote", "wrote", contextengine.ErrSubagentBegan},
		{"p", "forked", contextengine.ErrSubagentBegan},
		{"q", "fresh", nil},
		{"nobody", "fresh", nil},
		{"p", "fork", nil},
		{"p", "stranger", nil},
		{"stranger", "stranger", nil},
		{"q", "q", nil},
	} {
		if ok, err := b.RollbackSubagent(t.Context(), on(c.by), c.child); ok || !errors.Is(err, c.err) {
			t.Errorf("%s by %s: %v %v", c.child, c.by, ok, err)
		}
	}
	for _, key := range []string{"wrote", "forked", "fresh", "fork", "q"} {
		b.sid(key)
	}
}

func TestEndedIsNotedOnceInTheChildsLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.ingest("p", user("a")).Head
	b.ingest("q", user("b"))
	b.prepare("p", "c", contextengine.ContextIsolated)
	end := func(by, child string, reason contextengine.SubagentEndReason) bool {
		t.Helper()
		res, err := b.OnSubagentEnded(t.Context(), contextengine.SubagentEndedParams{Session: on(by), ChildSessionKey: child, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		return res.Ended
	}
	for i, reason := range []contextengine.SubagentEndReason{
		contextengine.SubagentReleased, contextengine.SubagentSwept, contextengine.SubagentCompleted, contextengine.SubagentDeleted,
	} {
		for _, by := range []string{"p", "c"} {
			if !end(by, "c", reason) {
				t.Errorf("%s by %s: not known", reason, by)
			}
		}
		s, d, err := b.store.ChildByKey(t.Context(), "t", "c")
		if err != nil || s.Head != int64(2+i) || d.EndReason != string(reason) || d.EndedAt.IsZero() {
			t.Errorf("head %d, %+v, %v", s.Head, d, err)
		}
	}
	for _, c := range [][2]string{{"q", "c"}, {"p", "stranger"}, {"p", "q"}, {"nobody", "nobody"}} {
		if end(c[0], c[1], contextengine.SubagentCompleted) {
			t.Errorf("%s is a child of %s", c[1], c[0])
		}
	}
	var invalid *contextengine.InvalidError
	_, err := b.OnSubagentEnded(t.Context(), contextengine.SubagentEndedParams{Session: on("p"), ChildSessionKey: "c", Reason: "lost"})
	if !errors.As(err, &invalid) || invalid.Field != "reason" {
		t.Errorf("%v", err)
	}
	// "deleted" marks and does not erase, and nothing of it is in the parent's log.
	b.ingest("c", user("still here"))
	if s, err := b.store.Session(t.Context(), "t", "p"); err != nil || s.Head != head {
		t.Errorf("the parent's head went from %d to %d, %v", head, s.Head, err)
	}
}

func TestTTLRemovesOnlyWhatNeverBegan(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.SubagentTTL = time.Hour })
	b.ingest("p", user("a"))
	short := func(child string, mode contextengine.ContextMode) {
		t.Helper()
		_, err := b.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{
			Session: on("p"), ChildSessionKey: child, ContextMode: mode, TTLMs: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	short("idle", contextengine.ContextIsolated)
	short("idle fork", contextengine.ContextFork)
	short("begun", contextengine.ContextFork)
	b.ingest("begun", user("x"))
	b.prepare("p", "later", contextengine.ContextIsolated)
	b.fork("p", "fork")
	removed := 0
	for more := true; more; {
		var n int
		var err error
		if n, more, err = b.store.SweepChildren(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		removed += n
	}
	// A millisecond may not have passed for the last of them.
	for range 100 {
		n, _, err := b.store.SweepChildren(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if removed += n; removed >= 2 {
			break
		}
	}
	if removed != 2 {
		t.Errorf("%d removed, want 2", removed)
	}
	for _, key := range []string{"idle", "idle fork"} {
		if _, err := b.store.Session(t.Context(), "t", key); !errors.Is(err, contextengine.ErrUnknownSession) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"begun", "later", "fork"} {
		b.sid(key)
	}
	_, d, err := b.store.ChildByKey(t.Context(), "t", "begun")
	if err != nil || !d.ExpiresAt.IsZero() {
		t.Errorf("%+v %v", d, err)
	}
}

// Announcements of children race the parent's own turn and its windows.
func TestParallelChildrenAppendToTheParentWhileItBuildsAWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("p", talk(0, 6)...)
	const children, each = 5, 8
	var wg sync.WaitGroup
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for c := range children {
		wg.Go(func() {
			key := fmt.Sprint("child", c)
			_, err := b.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{
				Session: on("p"), ChildSessionKey: key, ContextMode: contextengine.ContextFork,
			})
			check(err)
			for i := range each {
				_, err := b.Ingest(t.Context(), contextengine.IngestParams{
					Session: on("p"), Message: []byte(user(fmt.Sprintf("announce-%d-%d.", c, i))), IdempotencyKey: fmt.Sprint(c, "/", i),
				})
				check(err)
				_, err = b.Ingest(t.Context(), contextengine.IngestParams{Session: on(key), Message: []byte(assistant("working"))})
				check(err)
			}
			_, err = b.OnSubagentEnded(t.Context(), contextengine.SubagentEndedParams{
				Session: on("p"), ChildSessionKey: key, Reason: contextengine.SubagentCompleted,
			})
			check(err)
		})
	}
	wg.Go(func() {
		for i := range each {
			_, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
				Session: on("p"), AdvancementKey: fmt.Sprint("turn", i),
				Messages: rawMessages(user(fmt.Sprintf("turn-%d.", i)), calling(fmt.Sprint("t", i)), answering(fmt.Sprint("t", i), "ok"), assistant("done")),
			})
			check(err)
		}
	})
	wg.Go(func() {
		for range 3 * each {
			budget := 2000
			res, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("p"), TokenBudget: &budget})
			check(err)
			if res.OverBudget != nil || res.EstimatedTokens > budget {
				t.Errorf("%d tokens, %+v", res.EstimatedTokens, res.OverBudget)
			}
			pairs(t, res)
		}
	})
	wg.Go(func() {
		ctx := context.WithoutCancel(t.Context())
		for range 3 {
			budget := 3000
			_, err := b.Compact(ctx, contextengine.CompactParams{Session: on("p"), TokenBudget: &budget, Force: true})
			check(err)
		}
	})
	wg.Wait()
	at := int64(0)
	counts := map[string]int{}
	evs, err := b.store.Events(t.Context(), "t", b.sid("p"), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range evs {
		if at++; e.Seq != at {
			t.Fatalf("seq %d behind %d", e.Seq, at-1)
		}
		for c := range children {
			for i := range each {
				if m := fmt.Sprintf("announce-%d-%d.", c, i); e.Type == 1 && strings.Contains(string(e.Body), m) {
					counts[m]++
				}
			}
		}
		for i := range each {
			if m := fmt.Sprintf("turn-%d.", i); e.Type == 1 && strings.Contains(string(e.Body), m) {
				counts[m]++
			}
		}
	}
	if len(counts) != children*each+each {
		t.Errorf("%d messages landed, want %d", len(counts), children*each+each)
	}
	for m, n := range counts {
		if n != 1 {
			t.Errorf("%s landed %d times", m, n)
		}
	}
}
