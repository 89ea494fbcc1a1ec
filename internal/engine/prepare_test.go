package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// TestPreparedDraftsAreUsed: what an engine prepares at the soft threshold the
// compaction at the hard one does not ask for again.
func TestPreparedDraftsAreUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cfg := engine.Config{Log: b.store, Policy: compact.Policy{ChunkTokens: 500}}
	for name, e := range map[string]interface {
		contextengine.Engine
		contextengine.BatchIngester
		contextengine.AfterTurner
		Prepare(ctx context.Context, s store.Session) (int, error)
	}{"lossless": engine.NewLossless(cfg), "rolling": engine.NewRolling(cfg)} {
		ingest := func(raws []string) store.Session {
			t.Helper()
			p := contextengine.IngestBatchParams{Session: on(name)}
			for _, r := range raws {
				p.Messages = append(p.Messages, json.RawMessage(r))
			}
			if _, err := e.IngestBatch(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			s, err := b.store.Session(t.Context(), "t", name)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		budget := 12_000
		p := contextengine.AfterTurnParams{Session: on(name), TokenBudget: &budget}
		if _, err := e.AfterTurn(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		s, made := store.Session{}, 0
		for i := 0; s.LiveTokens() <= int64(budget)*85/100; i++ {
			s = ingest(talk(i, 1))
			if s.LiveTokens() > int64(budget)*7/10 && made == 0 {
				var err error
				if made, err = e.Prepare(t.Context(), s); err != nil || made == 0 {
					t.Fatalf("%s: %d drafts, %v", name, made, err)
				}
			}
		}
		res, err := e.Compact(t.Context(), contextengine.CompactParams{Session: on(name), TokenBudget: &budget})
		if err != nil || !res.Compacted {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		var d struct{ DraftsReused int }
		if err := json.Unmarshal(res.Result.Details, &d); err != nil || d.DraftsReused != made {
			t.Errorf("%s: %d of %d drafts are used, %v", name, d.DraftsReused, made, err)
		}
		if err := e.(interface{ Dispose(context.Context) error }).Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestAModelThatCountsMoreOwesEarlier: in a session's first epoch, before anything
// is learned, too.
func TestAModelThatCountsMoreOwesEarlier(t *testing.T) {
	t.Parallel()
	b := node(t, testdb.New(t))
	for model, want := range map[string]contextengine.CompactionStatus{
		"gpt-5": contextengine.CompactionNone, "claude-x": contextengine.CompactionScheduled,
	} {
		b.ingest(model, talk(0, 20)...)
		s, err := b.store.Session(t.Context(), "t", model)
		if err != nil {
			t.Fatal(err)
		}
		budget := int(s.LiveTokens() * 10 / 7) // seven tenths of it by the plain count
		res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
			Session: on(model), TokenBudget: &budget, RuntimeContext: &contextengine.RuntimeContext{ModelID: model},
		})
		if err != nil || res.Compaction != want {
			t.Errorf("%s: %q, %v", model, res.Compaction, err)
		}
		if want == contextengine.CompactionNone {
			continue
		}
		d, owes, err := b.store.DebtOf(t.Context(), "t", s.SID)
		if err != nil || !owes {
			t.Fatalf("owes %v, %v", owes, err)
		}
		paid, err := b.Owed(t.Context(), s, d)
		if err != nil || !paid.Compacted {
			t.Errorf("%s: paid with %+v, %v", model, paid, err)
		}
	}
}
