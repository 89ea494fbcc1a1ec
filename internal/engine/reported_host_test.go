package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

func TestATurnWithoutABudgetKeepsTheLastOneKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := func(key string, budget *int, raws ...string) contextengine.CompactionStatus {
		t.Helper()
		res, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
			Session: on("k"), AdvancementKey: key, Messages: rawMessages(raws...), TokenBudget: budget,
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Compaction
	}
	large := 1_000_000
	turn("1", &large, user("hi"), assistant("hello"))
	paste := user(strings.Repeat("a long paste of a log. ", 40_000)) // beyond what serves sessions without a budget
	if got := turn("2", nil, paste, assistant("read")); got != contextengine.CompactionNone {
		t.Errorf("compaction %q in a session of a million tokens", got)
	}
	if s, err := b.store.Session(t.Context(), "t", "k"); err != nil || s.TokenBudget != int64(large) || s.LiveTokens() < 128_000 {
		t.Errorf("budget %d, %d tokens, %v", s.TokenBudget, s.LiveTokens(), err)
	}
}

func TestSessionsThatNeverNamedABudgetAreCompacted(t *testing.T) {
	t.Parallel()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: testdb.New(t), DefaultBudget: 6000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := &bundle{t: t, store: st, Lossless: engine.NewLossless(engine.Config{Log: st, DefaultBudget: 6000})}
	t.Cleanup(func() { _ = b.Dispose(t.Context()) })
	scheduled := false
	for i := range 30 {
		res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on("k"), Messages: rawMessages(talk(i, 1)...)})
		if err != nil {
			t.Fatal(err)
		}
		scheduled = scheduled || res.Compaction == contextengine.CompactionScheduled
	}
	if !scheduled {
		t.Error("nothing was scheduled")
	}
}

// TestTheHostsCountOfItsPrompt may lie under the budget and far above what we
// count, or hold much that is not ours.
func TestTheHostsCountOfItsPrompt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 40)...)
	s, err := b.store.Session(t.Context(), "t", "k")
	if err != nil {
		t.Fatal(err)
	}
	ours := int(s.LiveTokens())
	compact := func(key string, force bool, budget, current int) contextengine.CompactResult {
		t.Helper()
		res, err := b.Compact(t.Context(), contextengine.CompactParams{
			Session: on(key), Force: force, TokenBudget: &budget, CurrentTokenCount: &current,
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for name, c := range map[string]struct {
		force           bool
		budget, current int
		under           int
	}{
		"forced under the budget, above the reserve": {true, 2 * ours, 17 * ours / 10, 2*ours - ours/3},
		"three times our estimate":                   {false, 2 * ours, 3 * ours, 2 * ours},
		"ours is little of it":                       {false, ours, 8 * ours, ours},
	} {
		key := name
		b.ingest(key, talk(0, 40)...)
		res := compact(key, c.force, c.budget, c.current)
		if !res.OK || !res.Compacted || res.Result.TokensAfter >= c.under || res.Result.TokensAfter >= res.Result.TokensBefore {
			t.Errorf("%s: %+v %+v", name, res, res.Result)
			continue
		}
		w := b.window(key, c.budget)
		if !strings.HasSuffix(text(w), talk(39, 1)[3]) || w.LeftOut != 0 {
			t.Errorf("%s: %d left out, the newest message is not the window's last", name, w.LeftOut)
		}
		// Asked again there is nothing left to do, and that is the answer.
		if again := compact(key, c.force, c.budget, c.current); !again.OK || again.Compacted || again.Reason == "" {
			t.Errorf("%s again: %+v", name, again)
		}
	}
}

// TestANewHostSessionUnderTheSameKeyGoesOn: whatever made the host rename its
// session, but for a reset that it tells.
func TestANewHostSessionUnderTheSameKeyGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := func(sid, words string) {
		t.Helper()
		p := contextengine.CommitTurnParams{Session: on("k"), AdvancementKey: words, Messages: rawMessages(says("user", words), says("assistant", "re:"+words))}
		p.SessionID = sid
		if _, err := b.CommitTurn(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	turn("s1", "a")
	turn("s2", "b") // a restart, an idle timeout, an abort that took too long
	p := on("k")
	p.SessionID = "s3"
	if res, err := b.Bootstrap(t.Context(), contextengine.BootstrapParams{Session: p, Messages: []json.RawMessage{}}); err != nil || res.ImportedMessages != 0 {
		t.Errorf("%+v %v", res, err)
	}
	turn("s3", "c")
	b.want("k", "a re:a b re:b c re:c")
	if _, err := b.Reset(t.Context(), p, nil, "new"); err != nil {
		t.Fatal(err)
	}
	turn("s4", "d")
	b.want("k", "d re:d")
	if got := b.stored("k"); len(got) != 8 {
		t.Errorf("%d messages in the log, want 8", len(got))
	}
}

func TestMessagesBehindAStartOfRecordsAloneAreTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	if res := l.sync(`{"type":"session","id":"s"}`, `{"type":"model_change","id":"m","parentId":null}`); res.Messages != 0 {
		t.Errorf("%+v", res)
	}
	b.want("k", "")
	l.sync(entry("u", "m", says("user", "u")), entry("a", "u", says("assistant", "a")))
	b.want("k", "u a")
	res, err := b.Bootstrap(t.Context(), contextengine.BootstrapParams{Session: l.session(), Messages: rawMessages(says("user", "u"), says("assistant", "a"))})
	if err != nil || res.ImportedMessages != 0 {
		t.Errorf("%+v %v", res, err)
	}
	b.want("k", "u a")
}

// TestEveryWayInMarksAHeartbeat, so that its turn is left out once it is over.
func TestEveryWayInMarksAHeartbeat(t *testing.T) {
	t.Parallel()
	poll := rawMessages(says("user", "poll"), says("assistant", "nothing"))
	for name, send := range map[string]func(*bundle) error{
		"ingest": func(b *bundle) error {
			for _, m := range poll {
				if _, err := b.Ingest(t.Context(), contextengine.IngestParams{Session: on("k"), Message: m, IsHeartbeat: true}); err != nil {
					return err
				}
			}
			return nil
		},
		"batch": func(b *bundle) error {
			_, err := b.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: on("k"), Messages: poll, IsHeartbeat: true})
			return err
		},
		"after-turn": func(b *bundle) error {
			_, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on("k"), Messages: poll, IsHeartbeat: true})
			return err
		},
		"commit": func(b *bundle) error {
			_, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{Session: on("k"), AdvancementKey: "t", Messages: poll, IsHeartbeat: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.ingest("k", says("user", "a"), says("assistant", "b"))
			if err := send(b); err != nil {
				t.Fatal(err)
			}
			marked := 0
			for _, e := range b.events("k") {
				if e.Type == events.MessageAppended && e.Facts.Flags.Has(message.Heartbeat) {
					marked++
				}
			}
			if marked != 2 {
				t.Errorf("%d messages are marked, want 2", marked)
			}
			b.ingest("k", says("user", "c"))
			b.want("k", "a b c")
		})
	}
}

// TestSessionsInterleavedOnOneEngineStayApart: each write goes to the session
// that it names, at the same time too, and of the tenant that it names; there is
// no current one.
func TestSessionsInterleavedOnOneEngineStayApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lanes := []contextengine.Session{on("a"), on("b"), {Tenant: "u", SessionKey: "a"}}
	budget := 100_000
	var all sync.WaitGroup
	for l, session := range lanes {
		all.Go(func() {
			for i := range 10 {
				raw := says("user", fmt.Sprint(l, "/", i))
				if res, err := b.Ingest(t.Context(), contextengine.IngestParams{Session: session, Message: json.RawMessage(raw), IdempotencyKey: fmt.Sprint(i)}); err != nil || res.Duplicate {
					t.Errorf("%+v %v", res, err)
				}
				w, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: session, TokenBudget: &budget})
				if got := messagesOf(w); err != nil || len(got) != i+1 || got[i] != raw {
					t.Errorf("lane %d shows %q, %v", l, got, err)
				}
			}
		})
	}
	all.Wait()
}
