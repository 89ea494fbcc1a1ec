package summarizers_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/store"
)

// TestPreparedDraftsAreNotAskedForAgain: models are asked before the session owes
// a compaction, and the compaction then asks for the rest alone.
func TestPreparedDraftsAreNotAskedForAgain(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, good("x"))
	b := setup(t, nil, model("m", srv.URL))
	s := b.talk("k")
	for range 4 {
		s = b.talk("k")
	}
	// More than a chunk lies between what a compaction leaves and where one is owed.
	const reported = 64_000
	budget := reported
	_, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
		Session: contextengine.Session{Tenant: "t", SessionKey: "k", SessionID: "h"}, TokenBudget: &budget,
	})
	if err != nil {
		t.Fatal(err)
	}
	soft, err := b.store.WorthPreparing(t.Context(), []string{"t", "t", "other"}, []uuid.UUID{s.SID, s.SID, s.SID}, 600)
	if err != nil || len(soft) != 1 || soft[0].SID != s.SID || soft[0].Tokens < 0.6*reported || soft[0].Tokens > 0.85*reported {
		t.Fatalf("%+v, %v", soft, err)
	}
	made, err := b.Prepare(t.Context(), s)
	if err != nil || made == 0 || len(srv.Requests()) != made {
		t.Fatalf("%d drafts of %d tokens by %d calls, %v", made, soft[0].Tokens, len(srv.Requests()), err)
	}
	if now := b.session("k"); now.Epoch != 1 {
		t.Errorf("epoch %d", now.Epoch)
	}
	if again, err := b.Prepare(t.Context(), s); err != nil || again != made || len(srv.Requests()) != made {
		t.Errorf("prepared again: %d drafts by %d calls, %v", again, len(srv.Requests()), err)
	}
	s = b.talk("k") // over the threshold now
	res, err := b.Owed(t.Context(), s, store.Debt{Budget: int64(reported)})
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	if asked, all := len(srv.Requests())-made, len(b.summaries(s)); asked != all-made {
		t.Errorf("%d calls for %d summaries, %d of them prepared", asked, all, made)
	}
}

func TestNothingIsPreparedUnderTheSoftThreshold(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, good("x"))
	b := setup(t, nil, model("m", srv.URL))
	s := b.talk("k")
	if made, err := b.Prepare(t.Context(), s); err != nil || made != 0 || len(srv.Requests()) != 0 {
		t.Errorf("%d drafts by %d calls, %v", made, len(srv.Requests()), err)
	}
	if soft, err := b.store.WorthPreparing(t.Context(), []string{"t"}, []uuid.UUID{s.SID}, 600); err != nil || len(soft) != 0 {
		t.Errorf("%+v, %v", soft, err)
	}
}
