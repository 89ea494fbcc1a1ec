package engine

import (
	"context"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/retrieval"
)

// RecallID is the id of the engine that recalls older passages.
const RecallID = "recall"

// Passages finds what older messages say of a question.
type Passages interface {
	Search(ctx context.Context, r retrieval.Request) (retrieval.Answer, error)
}

// Recall is Lossless with a memory of its own: where history no longer fits the
// window, the passages of it that match what is asked now stand in front of the
// question, word for word and cited. It compacts as Lossless does. What it finds
// depends on the search index, which it never waits for: without it the window
// is Lossless's.
type Recall struct{ Lossless }

// NewRecall makes the engine. Without cfg.Passages it is Lossless under another
// name. Dispose ends it.
func NewRecall(cfg Config) *Recall {
	r := &Recall{Lossless: *NewLossless(cfg)}
	if cfg.Passages != nil {
		r.windows.recollect = newRecollector(r.cfg)
	}
	return r
}

// Info describes the engine.
func (r *Recall) Info() contextengine.Info {
	info := r.Lossless.Info()
	info.ID, info.Name = RecallID, "engined recall"
	return info
}
