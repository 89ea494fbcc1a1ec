package bus_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/engined/engined/internal/bus"
)

func TestHostsKeepSecrets(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"nats://127.0.0.1:4222":                "127.0.0.1:4222",
		"nats://u:secret@a:1, tls://token@b:2": "a:1, b:2",
		"u:secret@c:4222":                      "c:4222",
		"d:4222":                               "d:4222",
	} {
		if got := bus.Hosts(setting); got != want {
			t.Errorf("%s: %q", setting, got)
		}
	}
}

func TestTheWarningNamesTheServerThatIsAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b, err := bus.Connect(t.Context(), bus.Options{
		URL: "nats://u:secret@127.0.0.1:1", Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); !strings.Contains(said, "servers=127.0.0.1:1") || strings.Contains(said, "secret") {
		t.Errorf("said %q", said)
	}
}
