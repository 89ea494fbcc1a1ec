package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// fake is an engine and a log in memory. err, when set, is what every call of
// the engine answers; block holds calls until their context ends.
type fake struct {
	mu       sync.Mutex
	sessions map[string][]events.Event
	order    []store.FeedEvent
	last     any
	err      error
	block    bool
	live     []events.LiveSummary
	wakes    []chan struct{}
	readErr  error
}

func newFake() *fake { return &fake{sessions: map[string][]events.Event{}} }

func sid(tenant, key string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(tenant+"\x00"+key))
}

func (f *fake) begin(ctx context.Context, p any) error {
	f.mu.Lock()
	f.last = p
	err, block := f.err, f.block
	f.mu.Unlock()
	if block {
		<-ctx.Done()
		return fmt.Errorf("fake: %w", ctx.Err())
	}
	return err
}

func (f *fake) params() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *fake) put(tenant, key string, t events.Type, body []byte) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := tenant + "\x00" + key
	e := events.Event{
		Seq: int64(len(f.sessions[id]) + 1), Type: t, Epoch: 1, Body: body, RecordedAt: time.Unix(1700000000, 0),
		Facts: message.Facts{Role: message.User, Tokens: 7},
	}
	f.sessions[id] = append(f.sessions[id], e)
	f.order = append(f.order, store.FeedEvent{
		Cursor: store.Cursor{XID: 1 << 40, Position: int64(len(f.order) + 1)}, SessionKey: key, SID: sid(tenant, key), Event: e,
	})
	for _, w := range f.wakes {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	return e.Seq
}

func (f *fake) store(s contextengine.Session, ms ...json.RawMessage) (seqs []int64, err error) {
	for i, m := range ms {
		if err := message.Check(m, message.Limits{}); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	for _, m := range ms {
		seqs = append(seqs, f.put(s.Tenant, s.SessionKey, events.MessageAppended, m))
	}
	return seqs, nil
}

func (f *fake) head(tenant, key string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.sessions[tenant+"\x00"+key]))
}

func (f *fake) Info() contextengine.Info {
	return contextengine.Info{ID: "fake", Name: "Fake", OwnsCompaction: true}
}

func (f *fake) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.IngestResult{}, err
	}
	seqs, err := f.store(p.Session, p.Message)
	if err != nil {
		return contextengine.IngestResult{}, err
	}
	return contextengine.IngestResult{Ingested: true, Seq: seqs[0], Head: seqs[0], Epoch: 1}, nil
}

func (f *fake) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.IngestBatchResult{}, err
	}
	seqs, err := f.store(p.Session, p.Messages...)
	return contextengine.IngestBatchResult{IngestedCount: len(seqs), Seqs: seqs, Head: f.head(p.Tenant, p.SessionKey), Epoch: 1}, err
}

func (f *fake) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.BootstrapResult{}, err
	}
	seqs, err := f.store(p.Session, p.Messages...)
	return contextengine.BootstrapResult{Bootstrapped: true, ImportedMessages: len(seqs), Epoch: 1}, err
}

func (f *fake) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	_, err := f.store(p.Session, p.Messages...)
	return contextengine.CommitTurnResult{Status: contextengine.TurnCommitted, Epoch: 1}, err
}

func (f *fake) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.AfterTurnResult{}, err
	}
	seqs, err := f.store(p.Session, p.Messages[p.PrePromptMessageCount:]...)
	return contextengine.AfterTurnResult{IngestedCount: len(seqs), Epoch: 1, Compaction: contextengine.CompactionNone}, err
}

func (f *fake) Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.TranscriptResult{}, err
	}
	for _, e := range p.Entries {
		f.put(p.Tenant, p.SessionKey, events.IdentityLinked, e)
	}
	return contextengine.TranscriptResult{Stored: len(p.Entries), Cursor: p.Cursor, Head: f.head(p.Tenant, p.SessionKey), Epoch: 1}, nil
}

func (f *fake) TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error) {
	return contextengine.TranscriptCursor{LifecycleRevision: s.GatewayID + "/" + s.SessionID}, f.begin(ctx, s)
}

func (f *fake) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	if err := f.begin(ctx, p); err != nil {
		return contextengine.AssembleResult{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r := contextengine.AssembleResult{EstimatedTokens: 1, Epoch: 1, SystemPromptAddition: "<a> & b"}
	for _, e := range f.sessions[p.Tenant+"\x00"+p.SessionKey] {
		if e.Type == events.MessageAppended {
			r.Messages = append(r.Messages, e.Body)
		}
		r.Head = e.Seq
	}
	return r, nil
}

func (f *fake) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true, Reason: "nothing to compact", Epoch: 1}, f.begin(ctx, p)
}

func (f *fake) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return contextengine.MaintainResult{Reason: "nothing to do"}, f.begin(ctx, p)
}

type step struct {
	session contextengine.Session
	n       *int64
}

func (f *fake) step(ctx context.Context, s contextengine.Session, n *int64) (contextengine.StepResult, error) {
	if err := f.begin(ctx, step{s, n}); err != nil {
		return contextengine.StepResult{}, err
	}
	head := f.head(s.Tenant, s.SessionKey)
	if head == 0 {
		return contextengine.StepResult{}, contextengine.ErrUnknownSession
	}
	return contextengine.StepResult{Head: head + 1, Epoch: 2}, nil
}

func (f *fake) Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, _ string) (contextengine.StepResult, error) {
	return f.step(ctx, s, keepFrom)
}

func (f *fake) Rewind(ctx context.Context, s contextengine.Session, to int64) (contextengine.StepResult, error) {
	return f.step(ctx, s, &to)
}

func (f *fake) UndoCompaction(ctx context.Context, s contextengine.Session, epoch *int64) (contextengine.StepResult, error) {
	return f.step(ctx, s, epoch)
}

func (f *fake) Session(_ context.Context, tenant, key string) (store.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readErr != nil {
		return store.Session{}, f.readErr
	}
	log := f.sessions[tenant+"\x00"+key]
	if log == nil {
		return store.Session{}, contextengine.ErrUnknownSession
	}
	n := int64(len(log))
	return store.Session{Tenant: tenant, Key: key, SID: sid(tenant, key), Head: n, HostHead: n, Epoch: 1, FactorMilli: 1000, LeafOffset: 7 * n}, nil
}

func (f *fake) Sessions(ctx context.Context, tenant, after, holding string, limit int) ([]store.SessionListing, error) {
	f.mu.Lock()
	var keys []string
	for id := range f.sessions {
		t, key, _ := strings.Cut(id, "\x00")
		if t == tenant && key > after && strings.Contains(strings.ToLower(key), strings.ToLower(holding)) {
			keys = append(keys, key)
		}
	}
	f.mu.Unlock()
	slices.Sort(keys)
	var out []store.SessionListing
	for _, key := range keys[:min(limit, len(keys))] {
		s, err := f.Session(ctx, tenant, key)
		if err != nil {
			return nil, err
		}
		out = append(out, store.SessionListing{Session: s, DebtTokens: 5})
	}
	return out, nil
}

func (f *fake) log(id uuid.UUID) []events.Event {
	for k, log := range f.sessions {
		tenant, key, _ := strings.Cut(k, "\x00")
		if sid(tenant, key) == id {
			return log
		}
	}
	return nil
}

func (f *fake) EventsWithin(_ context.Context, _ string, id uuid.UUID, after int64, limit int, maxBytes int64) ([]events.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readErr != nil {
		return nil, f.readErr
	}
	log := f.log(id)
	from := min(int(after), len(log))
	log = log[from:min(from+limit, len(log))]
	for i := range log {
		if maxBytes -= int64(len(log[i].Body)); maxBytes <= 0 {
			return log[:i+1], nil
		}
	}
	return log, nil
}

func (f *fake) EventsOfType(_ context.Context, _ string, id uuid.UUID, t events.Type, after, upto int64, limit int) ([]events.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []events.Event
	for _, e := range f.log(id) {
		if e.Type == t && e.Seq > after && e.Seq <= upto && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (f *fake) FeedBack(_ context.Context, _ string, n int) (store.Cursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readErr != nil || n > len(f.order) {
		return store.Cursor{}, f.readErr
	}
	c := f.order[len(f.order)-n].Cursor
	c.Position--
	return c, nil
}

func (f *fake) FeedWithin(_ context.Context, _ string, after store.Cursor, limit int, maxBytes int64) ([]store.FeedEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readErr != nil {
		return nil, f.readErr
	}
	var out []store.FeedEvent
	for _, e := range f.order {
		if e.Cursor.Position > after.Position && len(out) < limit && maxBytes > 0 {
			out, maxBytes = append(out, e), maxBytes-int64(len(e.Body))
		}
	}
	return out, nil
}

func (f *fake) StateAsOf(context.Context, string, uuid.UUID, int64) (events.State, error) {
	s := events.FirstState()
	s.Live = f.live
	return s, nil
}

func (f *fake) DebtOf(context.Context, string, uuid.UUID) (store.Debt, bool, error) {
	return store.Debt{Tokens: 5}, true, nil
}

func (f *fake) Attempts(context.Context, string, uuid.UUID, int) ([]store.Attempt, error) {
	return []store.Attempt{{Epoch: 1, Worker: "w", Outcome: "failed", Err: "boom"}}, nil
}

func (f *fake) CompactionCount(context.Context, string, uuid.UUID) (int64, error) { return 3, nil }

func (f *fake) Wake(string, string) (<-chan struct{}, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := make(chan struct{}, 1)
	f.wakes = append(f.wakes, w)
	return w, func() {}
}

// newAPI serves a fake without keys, as tenant "default", unless change says otherwise.
func newAPI(t testing.TB, f *fake, change func(*api.Config)) *api.API {
	t.Helper()
	cfg := api.Config{Engine: f, Steps: f, Branches: f, Log: f, Auth: api.OpenAuth("default"), Waker: f}
	if change != nil {
		change(&cfg)
	}
	a, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// keyed lets in who holds one of the tokens, as admin of its tenant.
func keyed(tenants map[string]string) api.Auth {
	return api.RingAuth(func(_ context.Context, token string) (access.Principal, error) {
		if tenant, ok := tenants[token]; ok {
			return access.Principal{Tenant: tenant, Key: "k-" + tenant, Scopes: access.Admin}, nil
		}
		return access.Principal{}, api.ErrUnauthorized
	})
}

// ask sends one request through the handler. headers come in pairs.
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return serveRequest(h, newRequest(method, path, body, headers...))
}

func newRequest(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func serveRequest(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problem reads a problem and holds it to the rules that all of them follow.
func problem(t testing.TB, w *httptest.ResponseRecorder) (slug string, p api.Problem) {
	t.Helper()
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("status %d, content type %q, body %s", w.Code, ct, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("problem %s: %v", w.Body, err)
	}
	if p.Status != w.Code || p.Title == "" || p.Detail == "" {
		t.Errorf("status %d, problem %+v", w.Code, p)
	}
	return p.Type[strings.LastIndexByte(p.Type, '/')+1:], p
}

func (f *fake) Recorded(_ context.Context, _ string, id uuid.UUID, seqs []int64) (map[int64]store.Recorded, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[int64]store.Recorded)
	for _, e := range f.log(id) {
		if slices.Contains(seqs, e.Seq) {
			out[e.Seq] = store.Recorded{Body: e.Body, At: e.RecordedAt}
		}
	}
	return out, nil
}
