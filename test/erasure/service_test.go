package erasure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	)
}

const (
	tenant   = "t"
	patience = 90 * time.Second
)

// service is one or two nodes on one database and one NATS.
type service struct {
	t       *testing.T
	db      string
	natsDir string
	nats    *bus.Embedded
	store   *store.Store
	node    *httptest.Server
	// other is a second node, which shares nothing with the first in memory.
	other *httptest.Server
	// encrypted: what its sessions say is.
	encrypted bool
}

// start runs a service. summarizer, if any, writes its summaries.
func start(t *testing.T, summarizer summarize.Summarizer) *service {
	t.Helper()
	return run(t, summarizer, false)
}

// startEncrypted is start with encryption at rest.
func startEncrypted(t *testing.T, summarizer summarize.Summarizer) *service {
	t.Helper()
	return run(t, summarizer, true)
}

func run(t *testing.T, summarizer summarize.Summarizer, encrypted bool) *service {
	t.Helper()
	s := &service{t: t, db: testdb.New(t), natsDir: t.TempDir(), encrypted: encrypted}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	if s.nats, err = bus.StartEmbedded(ctx, bus.EmbeddedOptions{StoreDir: s.natsDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bustest.Stop(t, s.nats) })
	s.store, s.node = s.serve(summarizer, true)
	_, s.other = s.serve(summarizer, false)
	return s
}

func (s *service) serve(summarizer summarize.Summarizer, work bool) (*store.Store, *httptest.Server) {
	t := s.t
	t.Helper()
	cfg := store.Config{URL: s.db}
	if s.encrypted {
		cfg = storetest.Encrypt(t, cfg)
	}
	return s.serveOn(cfg, summarizer, work)
}

func (s *service) serveOn(cfg store.Config, summarizer summarize.Summarizer, work bool) (*store.Store, *httptest.Server) {
	t := s.t
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	st, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := bustest.Connect(t, s.nats)
	publisher, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.NewLossless(engine.Config{Log: st, Notifier: worker.NewNotifier(publisher), Summarizer: summarizer})
	t.Cleanup(func() { _ = e.Dispose(ctx) })
	if work {
		w := worker.New(worker.Config{
			Debts: st, Bus: b, Compactor: e.Compactor, Name: "worker", Eraser: st,
			SweepInterval: 50 * time.Millisecond, RelayInterval: 50 * time.Millisecond, EraseInterval: 50 * time.Millisecond,
			Indexer: retrieval.NewIndexer(st, nil), IndexInterval: 50 * time.Millisecond,
		})
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
	}
	handler, err := api.New(api.Config{Engine: e, Steps: e, Branches: e, Log: st, Lives: st, Auth: api.OpenAuth(tenant), Search: retrieval.NewSearcher(st, retrieval.NewIndexer(st, nil))})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return st, server
}

// answer is a status and a body.
type answer struct {
	status int
	body   []byte
}

func (a answer) slug() string {
	var p struct{ Type string }
	if json.Unmarshal(a.body, &p) != nil {
		return ""
	}
	return p.Type[strings.LastIndexByte(p.Type, '/')+1:]
}

// into decodes a 200.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
}

func ask(t *testing.T, node *httptest.Server, method, path string, body any) answer {
	t.Helper()
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, node.URL+path, r)
	if err != nil {
		t.Fatal(err)
	}
	res, err := node.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, raw}
}

func (s *service) post(key, call string, body any) answer {
	s.t.Helper()
	return ask(s.t, s.node, http.MethodPost, path(key)+"/"+call, body)
}

func path(key string) string { return "/v1/sessions/" + url.PathEscape(key) }

type object = map[string]any

// messages are n turns about a marker, each a few hundred tokens.
func messages(n int, marker string) []any {
	var out []any
	for i := range n {
		text := fmt.Sprintf("question %d about %s: ", i, marker)
		for range 40 {
			text += "what about the release and its notes? "
		}
		out = append(out, object{"role": "user", "content": text},
			object{"role": "assistant", "content": []any{object{"type": "text", "text": "answer: " + text}}})
	}
	return out
}

func (s *service) await(what string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(until) {
			s.t.Fatalf("%s did not come", what)
		}
	}
}
