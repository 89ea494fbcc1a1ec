package transcripts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

const tenant = "t"

// lab is two nodes on one database.
type lab struct {
	store       *store.Store
	node, other *engine.Lossless
	count       *counter
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return labOf(t, func(st *store.Store) *engine.Lossless { return engine.NewLossless(engine.Config{Log: st}) })
}

// labOf is a lab whose nodes run an engine of the caller's.
func labOf(t *testing.T, open func(*store.Store) *engine.Lossless) *lab {
	t.Helper()
	l := &lab{}
	url := testdb.New(t)
	l.store, l.node = openNode(t, url, open)
	_, l.other = openNode(t, url, open)
	var err error
	if l.count, err = newCounter(); err != nil {
		t.Fatal(err)
	}
	return l
}

func openNode(t *testing.T, url string, open func(*store.Store) *engine.Lossless) (*store.Store, *engine.Lossless) {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	e := open(st)
	t.Cleanup(func() {
		if err := e.Dispose(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return st, e
}

func on(key string) contextengine.Session {
	return contextengine.Session{Tenant: tenant, SessionKey: key}
}

// batchSize of an import.
const batchSize = 200

// ingest stores the conversation under a key, as an import does, and counts
// what was new.
func (l *lab) ingest(ctx context.Context, key string, c *conversation) (stored int, head int64, err error) {
	for from := 0; from < len(c.messages); from += batchSize {
		to := min(from+batchSize, len(c.messages))
		res, err := l.node.IngestBatch(ctx, contextengine.IngestBatchParams{
			Session: on(key), Messages: c.messages[from:to], IdempotencyKeys: c.keys[from:to],
		})
		if err != nil {
			return stored, 0, err
		}
		stored, head = stored+res.IngestedCount, res.Head
	}
	return stored, head, nil
}

func (l *lab) assemble(ctx context.Context, e contextengine.Engine, key string, budget int, asOf *int64, explain bool) (contextengine.AssembleResult, error) {
	res, err := e.Assemble(ctx, contextengine.AssembleParams{Session: on(key), TokenBudget: &budget, AsOfSeq: asOf, Explain: explain})
	if err != nil {
		err = fmt.Errorf("assemble %s for %d: %w", key, budget, err)
	}
	return res, err
}

// journal is a session's log as it was read, beside the conversation.
type journal struct {
	*conversation
	key   string
	sid   uuid.UUID
	after int64
	// seqs are the messages' events; index finds a message by its event.
	seqs      []int64
	index     map[int64]int
	summaries map[int64]events.SummaryBody
	// live are the summaries of the newest epoch; epochs counts steps.
	live   []int64
	epochs int
}

func newJournal(key string, c *conversation) *journal {
	return &journal{conversation: c, key: key, index: map[int64]int{}, summaries: map[int64]events.SummaryBody{}}
}

// follow reads what was appended since, and holds the messages against those
// that were sent: byte for byte, in order.
func (l *lab) follow(ctx context.Context, j *journal) error {
	if j.sid == uuid.Nil {
		s, err := l.store.Session(ctx, tenant, j.key)
		if err != nil {
			return err
		}
		j.sid = s.SID
	}
	for {
		page, err := l.store.Events(ctx, tenant, j.sid, j.after, 500)
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.Seq != j.after+1 {
				return fmt.Errorf("event %d follows event %d", e.Seq, j.after)
			}
			j.after = e.Seq
			if err := j.add(e); err != nil {
				return fmt.Errorf("event %d: %w", e.Seq, err)
			}
		}
		if len(page) < 500 {
			return nil
		}
	}
}

func (j *journal) add(e events.Event) error {
	switch e.Type {
	case events.MessageAppended:
		i := len(j.seqs)
		if i >= len(j.messages) || !bytes.Equal(e.Body, j.messages[i]) {
			return fmt.Errorf("it is not message %d of the transcript", i)
		}
		j.index[e.Seq] = i
		j.seqs = append(j.seqs, e.Seq)
	case events.SummaryCreated:
		var b events.SummaryBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return err
		}
		if b.Tokens >= b.SourceTokens {
			return fmt.Errorf("a summary of %d tokens replaces %d", b.Tokens, b.SourceTokens)
		}
		j.summaries[e.Seq] = b
	case events.EpochRotated:
		var b events.EpochRotatedBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return err
		}
		j.live = b.Live
		j.epochs++
	}
	return nil
}

// leaves are the messages that a summary stands for, found by walking down its
// children.
func (j *journal) leaves(seq int64) ([]int64, error) {
	b, ok := j.summaries[seq]
	if !ok {
		return nil, fmt.Errorf("summary %d is not in the log", seq)
	}
	var out []int64
	for _, r := range b.Sources {
		for s := r.From; s <= r.To; s++ {
			if _, ok := j.index[s]; !ok {
				return nil, fmt.Errorf("summary %d covers event %d, which is no message", seq, s)
			}
			out = append(out, s)
		}
	}
	for _, child := range b.Children {
		under, err := j.leaves(child)
		if err != nil {
			return nil, err
		}
		out = append(out, under...)
	}
	slices.Sort(out)
	var covers []int64
	for _, r := range b.Covers {
		for s := r.From; s <= r.To; s++ {
			covers = append(covers, s)
		}
	}
	if !slices.Equal(out, covers) {
		return nil, fmt.Errorf("summary %d says it covers %v, its sources are %v", seq, covers, out)
	}
	return out, nil
}
