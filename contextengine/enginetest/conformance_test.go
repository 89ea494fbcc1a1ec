package enginetest_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/enginetest"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(testing.TB) contextengine.Engine { return newMemory() }, enginetest.Options{})
}

// behind puts engines behind the wire.
func behind(engine func() contextengine.Engine) func(testing.TB) contextengine.Engine {
	return func(t testing.TB) contextengine.Engine {
		t.Helper()
		server := httptest.NewServer(remote.Handler(engine(), remote.HandlerOptions{ExposeErrors: true}))
		t.Cleanup(server.Close)
		c, err := remote.Connect(t.Context(), remote.Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

func TestRemoteMemory(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, behind(func() contextengine.Engine { return newMemory() }), enginetest.Options{})
}

// TestBuiltins runs the engines that keep their log in Postgres, by themselves
// and behind the wire.
func TestBuiltins(t *testing.T) {
	t.Parallel()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	for name, e := range map[string]interface {
		contextengine.Engine
		contextengine.Disposer
	}{
		"Lossless": engine.NewLossless(engine.Config{Log: st}),
		"Legacy":   engine.NewLegacy(engine.Config{Log: st}, nil),
		"Rolling":  engine.NewRolling(engine.Config{Log: st}),
		"Recall":   engine.NewRecall(engine.Config{Log: st, Passages: retrieval.NewSearcher(st, nil)}),
	} {
		t.Cleanup(func() {
			if err := e.Dispose(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(testing.TB) contextengine.Engine { return e }, enginetest.Options{})
		})
		t.Run("Remote"+name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, behind(func() contextengine.Engine { return e }), enginetest.Options{})
		})
	}
}
