package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/hooks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hush"

// memory is a memory system's end of the webhook.
type memory struct {
	*httptest.Server
	got    chan map[string]any
	answer func(attempt int, w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	attempts int
	unsigned int
}

func serve(t *testing.T) *memory {
	t.Helper()
	m := &memory{got: make(chan map[string]any, 64)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		unix, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get(hooks.SignatureHeader), "t="), ",")
		at, _ := strconv.ParseInt(unix, 10, 64)
		m.mu.Lock()
		m.attempts++
		n := m.attempts
		if r.Header.Get(hooks.SignatureHeader) != hooks.Sign(secret, at, body) {
			m.unsigned++
		}
		m.mu.Unlock()
		if m.answer != nil {
			m.answer(n, w, r)
		}
		var p map[string]any
		if json.Unmarshal(body, &p) == nil {
			m.got <- p
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func start(t *testing.T, cfg hooks.Config) *hooks.Hooks {
	t.Helper()
	cfg.Secret = secret
	h := hooks.New(cfg)
	t.Cleanup(func() {
		if err := h.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

func event() engine.CompactionEvent {
	return engine.CompactionEvent{
		ID: "c1", Tenant: "acme", SessionKey: "agent:main:main", SID: uuid.MustParse("01900000-0000-7000-8000-000000000001"),
		Head: 48, Epoch: 3, Forced: true, TokensBefore: 9000, TokensAfter: 4000,
	}
}

type published struct{ got []string }

func (p *published) CompactionStarting(tenant string, _ uuid.UUID, seq, epoch int64) {
	p.got = append(p.got, "starting "+tenant+" "+strconv.FormatInt(seq, 10)+" "+strconv.FormatInt(epoch, 10))
}

func (p *published) CompactionFinished(tenant string, _ uuid.UUID, seq, epoch int64) {
	p.got = append(p.got, "finished "+tenant+" "+strconv.FormatInt(seq, 10)+" "+strconv.FormatInt(epoch, 10))
}

func TestBothHooksAreToldInIDs(t *testing.T) {
	t.Parallel()
	m, bus := serve(t), &published{}
	h := start(t, hooks.Config{URL: m.URL, Bus: bus})
	e := event()
	if err := h.Before(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	before := <-m.got
	e.Compacted, e.Epoch = true, 4
	h.After(e)
	after := <-m.got
	for k, want := range map[string]any{
		"type": "compaction.before", "id": "c1", "tenant": "acme", "sessionKey": "agent:main:main", "head": 48.0, "epoch": 3.0, "tokensBefore": 9000.0,
	} {
		if before[k] != want {
			t.Errorf("before: %s is %v, want %v", k, before[k], want)
		}
	}
	if after["type"] != "compaction.after" || after["id"] != "c1" || after["compacted"] != true || after["epoch"] != 4.0 {
		t.Errorf("after: %v", after)
	}
	if want := "starting acme 48 3,finished acme 48 4"; strings.Join(bus.got, ",") != want {
		t.Errorf("bus: %v", bus.got)
	}
	if m.unsigned != 0 {
		t.Errorf("%d requests have no valid signature", m.unsigned)
	}
}

func TestTheHookBeforeIsWaitedForWithinItsTime(t *testing.T) {
	t.Parallel()
	m := serve(t)
	m.answer = func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	h := start(t, hooks.Config{URL: m.URL, Timeout: 50 * time.Millisecond})
	if err := h.Before(t.Context(), event()); !errors.Is(err, context.DeadlineExceeded) || h.Stats().BeforeTimeout != 1 {
		t.Errorf("%v, %+v", err, h.Stats())
	}
}

func TestTheHookAfterIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ bad, attempts int }{"until it is taken": {2, 3}, "and then given up": {9, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := serve(t)
			m.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
				if n <= c.bad {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}
			h := start(t, hooks.Config{URL: m.URL, Pause: time.Millisecond})
			h.After(event())
			for range c.attempts {
				<-m.got
			}
			if err := h.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.attempts != c.attempts {
				t.Errorf("%d attempts", m.attempts)
			}
		})
	}
}

func TestNoPasswordIsInAnError(t *testing.T) {
	t.Parallel()
	h := start(t, hooks.Config{URL: "http://user:hunter2@127.0.0.1:1/x", Timeout: time.Second})
	if err := h.Before(t.Context(), event()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	none := start(t, hooks.Config{})
	if err := none.Before(t.Context(), event()); err != nil {
		t.Errorf("without a webhook: %v", err)
	}
}
