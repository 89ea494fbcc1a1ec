package retrieval

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// Index is what the Indexer needs of the store.
type Index interface {
	FeedUnopened(ctx context.Context, tenant string, after store.Cursor, limit int, maxBytes int64) ([]store.FeedEvent, error)
	EventsWithin(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int, maxBytes int64) ([]events.Event, error)
	SearchBehind(ctx context.Context, limit int) ([]string, error)
	SearchClaim(ctx context.Context, tenant string, lease time.Duration) (store.Cursor, bool, error)
	SearchRelease(ctx context.Context, tenant string) error
	SearchWrite(ctx context.Context, tenant string, b store.SearchBatch, lease time.Duration) error
	SearchForget(ctx context.Context, tenant string) (int64, error)
	SearchTenants(ctx context.Context) ([]string, error)
}

const (
	// runEvents and runBytes bound one transaction of the indexer.
	runEvents = 500
	runBytes  = 2 << 20
	// lease is how long a tenant waits for an indexer that died.
	lease = 20 * time.Second
	// turn is how long one tenant keeps the others waiting.
	turn = 3 * time.Second
	// tenantsAtOnce are looked up together.
	tenantsAtOnce = 16
	// callReach is how far before a result its call is looked for.
	callReach = 128
)

// Indexer writes the search index. Any number may run.
type Indexer struct {
	index Index
	log   *slog.Logger
	now   func() time.Time
}

// NewIndexer makes an Indexer that does nothing by itself.
func NewIndexer(index Index, log *slog.Logger) *Indexer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Indexer{index: index, log: log.With("component", "search"), now: time.Now}
}

// Once gives every tenant that is behind a turn. more is true when there was
// any: what is left, and what came meanwhile, is for the next call.
func (x *Indexer) Once(ctx context.Context) (more bool, err error) {
	tenants, err := x.index.SearchBehind(ctx, tenantsAtOnce)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, t := range tenants {
		n, err := x.Index(ctx, t, turn)
		more = more || n > 0
		if err != nil {
			errs = append(errs, err)
		}
	}
	return more && len(errs) == 0, errors.Join(errs...)
}

// Index brings a tenant's index up to its feed, or as far as the time allows.
// It tells how many events it read. Where another one is at it, it reads none.
func (x *Indexer) Index(ctx context.Context, tenant string, within time.Duration) (events int, err error) {
	until := x.now().Add(within)
	at, ok, err := x.index.SearchClaim(ctx, tenant, lease)
	if err != nil || !ok {
		return 0, err
	}
	defer func() {
		// A claim that is not given back runs out by itself.
		err = errors.Join(err, x.index.SearchRelease(context.WithoutCancel(ctx), tenant))
	}()
	for {
		n, to, err := x.run(ctx, tenant, at)
		if errors.Is(err, store.ErrSearchMoved) {
			return events, nil
		}
		if err != nil || n == 0 {
			return events, err
		}
		events, at = events+n, to
		if !x.now().Before(until) {
			return events, nil
		}
	}
}

func (x *Indexer) run(ctx context.Context, tenant string, at store.Cursor) (int, store.Cursor, error) {
	page, err := x.index.FeedUnopened(ctx, tenant, at, runEvents, runBytes)
	if err != nil || len(page) == 0 {
		return 0, at, err
	}
	batch := store.SearchBatch{From: at, To: page[len(page)-1].Cursor, Heads: make(map[uuid.UUID]int64)}
	calls := &callNames{ctx: ctx, x: x, tenant: tenant, names: make(map[uuid.UUID]map[string]string)}
	for i := range page {
		e := &page[i]
		batch.Heads[e.SID] = max(batch.Heads[e.SID], e.Seq)
		if e.Sealed {
			continue // its words would stand in the index
		}
		parts, err := extract(e, func(id string) string { return calls.of(e, id) })
		if err != nil {
			// What cannot be read is no text; the rest is.
			x.log.Warn("an event was not indexed", "tenant", tenant, "session", e.SID, "seq", e.Seq, "error", err)
			continue
		}
		calls.note(e)
		if len(parts) > 0 && e.Type == events.SummaryCreated {
			batch.Summaries = append(batch.Summaries, store.SearchSource{SID: e.SID, Seq: e.Seq, Body: e.Body})
		}
		batch.Parts = append(batch.Parts, parts...)
	}
	return len(page), batch.To, x.index.SearchWrite(ctx, tenant, batch, lease)
}

// Rebuild drops the index of a tenant, or of all with "", and builds it again
// from the log. Searches meanwhile find what is there already. tell is called
// with the events that are done.
func (x *Indexer) Rebuild(ctx context.Context, tenant string, tell func(tenant string, events int)) error {
	tenants := []string{tenant}
	if tenant == "" {
		var err error
		if tenants, err = x.index.SearchTenants(ctx); err != nil {
			return err
		}
	}
	for _, t := range tenants {
		if _, err := x.index.SearchForget(ctx, t); err != nil {
			return err
		}
		done := 0
		for {
			n, err := x.Index(ctx, t, turn)
			if err != nil {
				return err
			}
			done += n
			if tell != nil {
				tell(t, done)
			}
			if n == 0 {
				break // done, or a worker has taken it over
			}
		}
	}
	return nil
}

// callNames knows the tools of calls, for results that do not name theirs.
type callNames struct {
	ctx    context.Context
	x      *Indexer
	tenant string
	names  map[uuid.UUID]map[string]string
}

func (c *callNames) note(e *store.FeedEvent) {
	if e.Type == events.MessageAppended && e.Facts.Role == message.Assistant {
		c.keep(e.SID, e.Body)
	}
}

func (c *callNames) keep(sid uuid.UUID, body []byte) {
	if c.names[sid] == nil {
		c.names[sid] = make(map[string]string)
	}
	noteCalls(c.names[sid], body)
}

// noteCalls takes in the tools of the calls of a message, by their ids.
func noteCalls(names map[string]string, body []byte) {
	m, err := message.Read(body)
	if err != nil {
		return
	}
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == message.ToolCall {
			names[b.Call.ID] = b.Call.Name
		}
	}
}

// of names a call's tool. What came before this run is read once a session.
func (c *callNames) of(e *store.FeedEvent, id string) string {
	if name, ok := c.names[e.SID][id]; ok {
		return name
	}
	if _, read := c.names[e.SID][""]; read {
		return ""
	}
	if c.names[e.SID] == nil {
		c.names[e.SID] = make(map[string]string)
	}
	c.names[e.SID][""] = ""
	before, err := c.x.index.EventsWithin(c.ctx, c.tenant, e.SID, max(0, e.Seq-callReach), callReach, runBytes)
	if err != nil {
		return "" // the text is found without the tool's name
	}
	own := c.names[e.SID]
	c.names[e.SID] = map[string]string{"": ""}
	for i := range before {
		if before[i].Seq < e.Seq && before[i].Type == events.MessageAppended && before[i].Facts.Role == message.Assistant {
			c.keep(e.SID, before[i].Body)
		}
	}
	maps.Copy(c.names[e.SID], own)
	return c.names[e.SID][id]
}
