package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/contextengine/remote/remotetest"
	"github.com/engined/engined/host"
	"github.com/engined/engined/internal/engine"
)

// shelf is a default engine that keeps everything.
type shelf struct {
	mu       sync.Mutex
	messages map[string][]json.RawMessage
}

func (*shelf) Info() contextengine.Info {
	return contextengine.Info{ID: engine.LegacyID, Name: "Shelf"}
}

func (s *shelf) Ingest(_ context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[p.SessionKey] = append(s.messages[p.SessionKey], p.Message)
	return contextengine.IngestResult{Ingested: true}, nil
}

func (s *shelf) Assemble(_ context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return contextengine.AssembleResult{Messages: append([]json.RawMessage{}, s.messages[p.SessionKey]...)}, nil
}

func (*shelf) Compact(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true, Reason: "nothing to compact"}, nil
}

// TestAHostileRemoteEngineCostsNoTurn: whatever it does, every turn is answered
// and stored by the default engine, and it is set aside once.
func TestAHostileRemoteEngineCostsNoTurn(t *testing.T) {
	t.Parallel()
	for _, b := range remotetest.All() {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			server, err := remotetest.Start(b)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			slow := 30 * time.Second
			switch b {
			case remotetest.Hang, remotetest.HangInBody, remotetest.SlowDrip, remotetest.Late, remotetest.EarlyHints:
				slow = 100 * time.Millisecond
			}
			registry := engine.NewRegistry(engine.RegistryConfig{})
			t.Cleanup(func() {
				if err := registry.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			kept := &shelf{messages: map[string][]json.RawMessage{}}
			for _, reg := range []engine.Registration{
				{ID: engine.LegacyID, Owner: engine.CoreOwner, Factory: func(context.Context) (contextengine.Engine, error) { return kept, nil }},
				{ID: "acme", Owner: "remote:acme", Factory: func(ctx context.Context) (contextengine.Engine, error) {
					return remote.Connect(ctx, remote.Config{URL: server.URL, Timeout: slow, CompactTimeout: slow, MaxAnswerBytes: 1 << 20})
				}},
			} {
				if err := registry.Register(reg); err != nil {
					t.Fatal(err)
				}
			}
			const sessions, turns = 3, 10
			w := &world{}
			h := newHost(t, w, registry.Slot("acme"), func(c *host.Config) { c.Tools = nil })
			var wg sync.WaitGroup
			for s := range sessions {
				wg.Go(func() {
					for i := range turns {
						res, err := h.Turn(t.Context(), request(func(r *host.TurnRequest) {
							r.Session.SessionKey, r.ID, r.FirstTurn = fmt.Sprint("s", s), fmt.Sprint("turn ", s, i), i == 0
						}))
						if err != nil || res.CommitErr != nil {
							t.Errorf("turn %d: %v, commit %v", i, err, res.CommitErr)
						}
					}
				})
			}
			wg.Wait()
			if q := registry.Quarantines(); len(q) != 1 || q[0].EngineID != "acme" {
				t.Errorf("quarantines: %+v", q)
			}
			for key, messages := range kept.messages {
				if len(messages) != 2*turns {
					t.Errorf("session %s: %d messages, want %d", key, len(messages), 2*turns)
				}
			}
		})
	}
}
