package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/contextengine/remote/remotetest"
)

// margin is far more than a loaded machine needs; what hangs is still found.
const margin = 30 * time.Second

// calls are all calls of the contract, required ones first.
func calls(ctx context.Context, e *remote.Client) map[string]func() error {
	s, one := on("agent:main"), []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}
	return map[string]func() error{
		"ingest": func() error {
			_, err := e.Ingest(ctx, contextengine.IngestParams{Session: s, Message: one[0]})
			return err
		},
		"assemble": func() error {
			_, err := e.Assemble(ctx, contextengine.AssembleParams{Session: s})
			return err
		},
		"compact": func() error {
			_, err := e.Compact(ctx, contextengine.CompactParams{Session: s})
			return err
		},
		"bootstrap": func() error {
			_, err := e.Bootstrap(ctx, contextengine.BootstrapParams{Session: s, Messages: one})
			return err
		},
		"ingest-batch": func() error {
			_, err := e.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: one, IdempotencyKeys: []string{"k"}})
			return err
		},
		"commit-turn": func() error {
			_, err := e.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "k", Messages: one})
			return err
		},
		"after-turn": func() error {
			_, err := e.AfterTurn(ctx, contextengine.AfterTurnParams{Session: s, Messages: one})
			return err
		},
		"maintain": func() error {
			_, err := e.Maintain(ctx, contextengine.MaintainParams{Session: s})
			return err
		},
	}
}

func hostile(t *testing.T, b remotetest.Behaviour, mod ...func(*remote.Config)) (*remotetest.Server, *remote.Client) {
	t.Helper()
	server, err := remotetest.Start(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server, connect(t, server.URL, append([]func(*remote.Config){func(c *remote.Config) {
		c.Timeout, c.CompactTimeout = margin, margin
	}}, mod...)...)
}

// TestHostileEngineAlwaysEndsInAnError: whatever an engine does, every call of
// many at once returns a typed error in time.
func TestHostileEngineAlwaysEndsInAnError(t *testing.T) {
	t.Parallel()
	for _, b := range remotetest.All() {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			timeout := margin
			switch b {
			case remotetest.Hang, remotetest.HangInBody, remotetest.SlowDrip, remotetest.Late, remotetest.EarlyHints:
				timeout = 200 * time.Millisecond
			}
			_, c := hostile(t, b, func(cfg *remote.Config) {
				cfg.Timeout, cfg.CompactTimeout, cfg.MaxAnswerBytes = timeout, timeout, 4<<20
			})
			var wg sync.WaitGroup
			for op, call := range calls(t.Context(), c) {
				for range 2 {
					wg.Go(func() {
						done := make(chan error, 1)
						go func() { done <- call() }()
						select {
						case err := <-done:
							judge(t, b, op, err)
						case <-time.After(2 * margin):
							t.Errorf("%s is still waiting", op)
						}
					})
				}
			}
			wg.Wait()
		})
	}
}

// judge holds an error to its type.
func judge(t *testing.T, b remotetest.Behaviour, op string, err error) {
	t.Helper()
	if err == nil {
		// Nothing in the answer of after-turn is required.
		if b != remotetest.NoMembers || op != "after-turn" {
			t.Errorf("%s: no error", op)
		}
		return
	}
	var (
		protocol *remote.ProtocolError
		status   *remote.StatusError
		lost     *remote.UnreachableError
		late     *remote.TimeoutError
	)
	if !errors.As(err, &protocol) && !errors.As(err, &status) && !errors.As(err, &lost) && !errors.As(err, &late) {
		t.Errorf("%s: %T %v has no type of ours", op, err, err)
	}
	if strings.Contains(err.Error(), "Log in") || strings.Contains(err.Error(), "Gateway</h1>") {
		t.Errorf("%s: %v quotes what came", op, err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("%s: an error of %d bytes", op, len(err.Error()))
	}
	switch b {
	case remotetest.Hang, remotetest.HangInBody, remotetest.SlowDrip, remotetest.Late:
		if !errors.Is(err, context.DeadlineExceeded) || late == nil {
			t.Errorf("%s: %T %v, want the deadline", op, err, err)
		}
	case remotetest.InternalError, remotetest.HTML500, remotetest.Redirect, remotetest.BadProblem, remotetest.HugeError, remotetest.NotImplemented:
		if status == nil {
			t.Errorf("%s: %T %v, want a status", op, err, err)
		}
	case remotetest.Crash, remotetest.Reset:
		if lost == nil {
			t.Errorf("%s: %T %v, want a lost connection", op, err, err)
		}
	case remotetest.EarlyHints: // a deadline or a broken header, whichever comes first
	default:
		if protocol == nil {
			t.Errorf("%s: %T %v, want a broken protocol", op, err, err)
		}
	}
	if errors.Is(err, errors.ErrUnsupported) != (b == remotetest.NotImplemented) {
		t.Errorf("%s: unsupported: %v", op, err)
	}
}

// TestHugeAnswersAreNotMemory is not parallel: it counts what is allocated. The
// server is in the same process and reuses what it writes.
func TestHugeAnswersAreNotMemory(t *testing.T) {
	const limit = 2 << 20
	for _, b := range []remotetest.Behaviour{remotetest.Huge, remotetest.HugeChunked, remotetest.HugeError, remotetest.HugeHeader, remotetest.ManyItems} {
		t.Run(string(b), func(t *testing.T) {
			_, c := hostile(t, b, func(cfg *remote.Config) { cfg.MaxAnswerBytes, cfg.Timeout = limit, margin })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k")})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("no error")
			}
			// Growing buffers count several times; 100 MB would be seen.
			if took := after.TotalAlloc - before.TotalAlloc; took > 40<<20 {
				t.Errorf("allocated %d MiB", took>>20)
			}
		})
	}
}

func TestManySmallMessagesAreCountedBeforeTheyAreKept(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"estimatedTokens":1,"messages":[{}`+strings.Repeat(",{}", 100_000)+`]}`)
	}))
	t.Cleanup(server.Close)
	c := connect(t, server.URL, func(cfg *remote.Config) {
		cfg.Info = &contextengine.Info{ID: "x", Name: "x"}
		cfg.MaxMessages = 1000
	})
	_, err := c.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k")})
	var protocol *remote.ProtocolError
	if !errors.As(err, &protocol) || protocol.Limit != 1000 {
		t.Errorf("%v", err)
	}
}

// TestOneBadAnswerLeavesTheNextCallAlone: a connection that was misused is not
// used again.
func TestOneBadAnswerLeavesTheNextCallAlone(t *testing.T) {
	t.Parallel()
	for _, b := range remotetest.All() {
		server, c := hostile(t, b, func(cfg *remote.Config) { cfg.MaxConns = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := c.Assemble(ctx, contextengine.AssembleParams{Session: on("k")}); err == nil {
			t.Errorf("%s: no error", b)
		}
		server.Set(remotetest.InternalError)
		_, err := c.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k")})
		var status *remote.StatusError
		if !errors.As(err, &status) || status.Detail != "out of luck" {
			t.Errorf("%s: the next call: %v", b, err)
		}
	}
}
