package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestTopologyIsIdempotentAndMended(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	e, err := StartEmbedded(ctx, EmbeddedOptions{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	connect := func() *Bus {
		b, err := Connect(ctx, Options{InProcess: e})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		return b
	}
	one, two := connect(), connect()
	if a, b := one.topo.last(), two.topo.last(); !a.jobs.Equal(b.jobs) || !a.events.Equal(b.events) || a.jobs.IsZero() {
		t.Errorf("two connections made different streams: %+v %+v", a, b)
	}
	for _, want := range streamConfigs(1) {
		s, err := one.js.Stream(ctx, want.Name)
		if err != nil {
			t.Fatal(err)
		}
		// Or every look would be an update.
		if !sameStream(s.CachedInfo().Config, want) {
			t.Errorf("%s differs from what was asked: %+v", want.Name, s.CachedInfo().Config)
		}
	}
	wrong := streamConfigs(1)[0]
	wrong.MaxAge = time.Minute
	wrong.Duplicates = time.Minute
	if _, err := one.js.UpdateStream(ctx, wrong); err != nil {
		t.Fatal(err)
	}
	before := one.topo.last()
	after, err := one.topo.recreate(ctx, before)
	if err != nil || after.seen == before.seen || !after.jobs.Equal(before.jobs) {
		t.Errorf("recreate: %+v, %v", after, err)
	}
	s, err := one.js.Stream(ctx, JobsStream)
	if err != nil || s.CachedInfo().Config.MaxAge != jobsMaxAge {
		t.Errorf("stream not mended: %v", err)
	}
	// Two callers with the same belief do the work once.
	if again, err := one.topo.recreate(ctx, before); err != nil || again != after {
		t.Errorf("second recreate: %+v, %v", again, err)
	}
	// What the server cannot do is told by Healthy, and does not stop Connect.
	b, err := Connect(ctx, Options{InProcess: e, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	if ok, detail := b.Healthy(); ok {
		t.Errorf("three replicas on one server: %s", detail)
	}
	if _, err := one.js.Stream(ctx, EventsStream); err != nil || gone(err) || gone(nil) || !gone(jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
}
