// Package bustest gives tests a real NATS server of their own, and the ways
// in which one fails.
package bustest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/engined/engined/internal/bus"
)

const patience = 30 * time.Second

// Start runs a server without a listener until the test ends.
func Start(t testing.TB) *bus.Embedded {
	t.Helper()
	return start(t, "")
}

// StartTCP runs a server that also listens on a loopback port, the same one
// after each restart.
func StartTCP(t testing.TB) *bus.Embedded {
	t.Helper()
	return start(t, "127.0.0.1:0")
}

func start(t testing.TB, listen string) *bus.Embedded {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := bus.StartEmbedded(ctx, bus.EmbeddedOptions{StoreDir: t.TempDir(), Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Stop(t, e) })
	return e
}

// Stop stops the server; its clients stay and see it gone.
func Stop(t testing.TB, e *bus.Embedded) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// Resume starts a stopped server with what it had stored.
func Resume(t testing.TB, e *bus.Embedded) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// Wipe stops the server, deletes all it stored and starts it again.
func Wipe(t testing.TB, e *bus.Embedded) {
	t.Helper()
	Stop(t, e)
	if err := e.Wipe(); err != nil {
		t.Fatal(err)
	}
	Resume(t, e)
}

// Connect opens a bus on the server that reconnects quickly and is closed with
// the test.
func Connect(t testing.TB, e *bus.Embedded) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(context.Background(), bus.Options{InProcess: e, ReconnectWait: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close bus: %v", err)
		}
	})
	return b
}

// AwaitHealthy waits until the bus can carry messages.
func AwaitHealthy(t testing.TB, b *bus.Bus) {
	t.Helper()
	deadline := time.After(patience)
	for {
		ok, detail := b.Healthy()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("bus not healthy: %s", detail)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
