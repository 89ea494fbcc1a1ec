package bus_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
)

func TestAnOrderlyEndIsNoWarning(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	b, err := bus.Connect(testContext(t), bus.Options{InProcess: bustest.Start(t), Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	bustest.AwaitHealthy(t, b)
	if err := b.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	// The connection has ended, and with it whatever writes to the log.
	if strings.Contains(said.String(), "level=WARN") {
		t.Errorf("an orderly end says\n%s", said.String())
	}
}

func TestAnObserverCreatesNothing(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	look := func() (bool, string) {
		b, err := bus.Connect(testContext(t), bus.Options{InProcess: e, Observe: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(context.Background())
		return b.Healthy()
	}
	for range 2 {
		if ok, detail := look(); ok || !strings.Contains(detail, "streams missing") {
			t.Errorf("a server without streams: %v, %s", ok, detail)
		}
	}
	bustest.AwaitHealthy(t, bustest.Connect(t, e))
	if ok, detail := look(); !ok {
		t.Errorf("a server with streams: %s", detail)
	}
}
