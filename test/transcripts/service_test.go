package transcripts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

// patience bounds every wait; it is no expectation.
const patience = 60 * time.Second

// TestServiceCompactsTranscripts goes the way that a gateway goes: the
// transcripts come over HTTP, a turn ends, a worker hears of it through NATS
// and compacts, and the windows of before and after come over HTTP again.
func TestServiceCompactsTranscripts(t *testing.T) {
	t.Parallel()
	l, node := newService(t)
	const budget = 2000
	owing := 0
	for _, f := range bundled(t) {
		for _, c := range f.sessions {
			j := newJournal(c.key, c)
			before, err := l.serve(t.Context(), node, j, budget)
			if err != nil {
				t.Fatalf("%s: %v", c.key, err)
			}
			res, err := node.AfterTurn(t.Context(), c.key, budget)
			if err != nil {
				t.Fatal(err)
			}
			if res.Compaction == contextengine.CompactionNone {
				continue
			}
			owing++
			if err := awaitEpoch(t.Context(), node, c.key, before.res.Epoch+1); err != nil {
				t.Fatalf("%s: %v", c.key, err)
			}
			after, err := l.over(t.Context(), node, j, budget)
			if err != nil {
				t.Errorf("%s: after: %v", c.key, err)
				continue
			}
			if after.summaries == 0 || after.res.LeftOut > before.res.LeftOut {
				t.Errorf("%s: %d summaries, %d messages left out, %d before", c.key, after.summaries, after.res.LeftOut, before.res.LeftOut)
			}
			then, _, err := node.Assemble(t.Context(), c.key, contextengine.AssembleParams{TokenBudget: &before.budget, AsOfSeq: &before.res.Head})
			if err != nil {
				t.Fatal(err)
			}
			if err := equal(&before.res, &then); err != nil {
				t.Errorf("%s: as of %d: %v", c.key, before.res.Head, err)
			}
		}
	}
	if owing < 5 {
		t.Errorf("only %d sessions owed a compaction", owing)
	}
}

// newService is a node with its API, a worker and a NATS server.
func newService(t *testing.T) (*lab, *client.Client) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	st, err := storetest.Open(t, ctx, store.Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := bustest.Connect(t, bustest.Start(t))
	publisher, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.NewLossless(engine.Config{Log: st, Notifier: worker.NewNotifier(publisher)})
	t.Cleanup(func() {
		if err := e.Dispose(ctx); err != nil {
			t.Error(err)
		}
	})
	w := worker.New(worker.Config{Debts: st, Bus: b, Compactor: e.Compactor, Name: t.Name(), SweepInterval: 100 * time.Millisecond})
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	handler, err := api.New(api.Config{Engine: e, Steps: e, Branches: e, Log: st, Lives: st, Auth: api.OpenAuth(tenant)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	node, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	l := &lab{store: st, node: e, other: e}
	if l.count, err = newCounter(); err != nil {
		t.Fatal(err)
	}
	return l, node
}

// serve imports a conversation twice and looks at its window and its events.
func (l *lab) serve(ctx context.Context, node *client.Client, j *journal, budget int) (*seen, error) {
	for _, want := range []int{len(j.messages), 0} {
		res, err := node.IngestBatch(ctx, j.key, j.messages, j.keys)
		if err != nil || res.IngestedCount != want {
			return nil, fmt.Errorf("%d of %d messages stored, want %d: %w", res.IngestedCount, len(j.messages), want, err)
		}
	}
	var back []json.RawMessage
	for after := int64(0); ; {
		rows, next, err := node.Events(ctx, j.key, after, 100)
		if err != nil {
			return nil, err
		}
		for _, e := range rows {
			back = append(back, e.Message)
		}
		if after = next; next == 0 {
			break
		}
	}
	if !slices.EqualFunc(back, j.messages, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return nil, fmt.Errorf("%d events are not the %d messages", len(back), len(j.messages))
	}
	return l.over(ctx, node, j, budget)
}

// over checks a window that came over HTTP.
func (l *lab) over(ctx context.Context, node *client.Client, j *journal, budget int) (*seen, error) {
	if err := l.follow(ctx, j); err != nil {
		return nil, err
	}
	res, _, err := node.Assemble(ctx, j.key, contextengine.AssembleParams{TokenBudget: &budget, Explain: true})
	if err != nil {
		return nil, err
	}
	return l.check(j, budget, res)
}

func awaitEpoch(ctx context.Context, node *client.Client, key string, epoch int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := node.Session(ctx, key)
		if err != nil {
			return fmt.Errorf("waiting for epoch %d: %w", epoch, err)
		}
		if s.Epoch >= epoch {
			return nil
		}
		<-tick.C
	}
}
