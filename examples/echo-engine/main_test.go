package main

import (
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	ce "github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/enginetest"
	"github.com/engined/engined/contextengine/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEchoBehindTheWire runs the conformance suite the way a host meets the
// engine: through a client.
func TestEchoBehindTheWire(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(t testing.TB) ce.Engine {
		t.Helper()
		echo := &Echo{Last: enginetest.Kept, sessions: map[string]ce.AssembleResult{}}
		server := httptest.NewServer(remote.Handler(echo, remote.HandlerOptions{Token: "secret"}))
		t.Cleanup(server.Close)
		c, err := remote.Connect(t.Context(), remote.Config{URL: server.URL, Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}, enginetest.Options{Lacks: enginetest.Budgets | enginetest.IdempotencyKeys | enginetest.Expectations | enginetest.Compaction})
}
