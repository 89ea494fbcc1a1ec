package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

// brokenLog reads views until a test breaks it.
type brokenLog struct {
	*store.Store
	broken bool
}

func (l *brokenLog) View(ctx context.Context, tenant, key string, cached uuid.UUID, cachedHead int64, limit int) (store.View, error) {
	if l.broken {
		panic("index out of range")
	}
	return l.Store.View(ctx, tenant, key, cached, cachedHead, limit)
}

// builtins is a slot with the real engines on a real Postgres.
func builtins(t *testing.T) (*brokenLog, *engine.Registry, *engine.Guard) {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	log := &brokenLog{Store: st}
	lossless, legacy := engine.NewLossless(engine.Config{Log: log}), engine.NewLegacy(engine.Config{Log: log}, nil)
	reg := engine.NewRegistry(engine.RegistryConfig{})
	for _, e := range []engineWithEnd{lossless, legacy} {
		if err := reg.Register(engine.Registration{ID: e.Info().ID, Owner: engine.CoreOwner, Factory: always(e), Shared: true}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(reg.Close(ctx), lossless.Dispose(ctx), legacy.Dispose(ctx)); err != nil {
			t.Error(err)
		}
	})
	return log, reg, reg.Slot(engine.LosslessID)
}

type engineWithEnd interface {
	contextengine.Engine
	contextengine.Disposer
}

func TestLosslessIsNotSetAsideWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	log, reg, slot := builtins(t)
	if _, err := slot.Ingest(t.Context(), contextengine.IngestParams{Session: on("s"), Message: said("a")}); err != nil {
		t.Fatal(err)
	}
	log.Close()
	for _, c := range guardedCalls() {
		if c.op == engine.OpPrepare || c.op == engine.OpEnded {
			continue
		}
		if by, err := c.do(t.Context(), slot); err == nil {
			t.Errorf("%s is answered without Postgres, by %q", c.op, by)
		}
	}
	if qs := reg.Quarantines(); len(qs) != 0 {
		t.Errorf("set aside: %+v", qs)
	}
}

func TestLosslessIsSetAsideForAPanic(t *testing.T) {
	t.Parallel()
	log, reg, slot := builtins(t)
	log.broken = true
	p := contextengine.AssembleParams{Session: on("s"), Messages: []json.RawMessage{said("the host's own")}}
	res, err := slot.Assemble(t.Context(), p)
	if err != nil || len(res.Messages) != 1 || string(res.Messages[0]) != string(p.Messages[0]) {
		t.Fatalf("%s, %v", res.Messages, err)
	}
	if qs := reg.Quarantines(); len(qs) != 1 || qs[0].Reason != "panic: index out of range" || slot.Info().ID != engine.LegacyID {
		t.Errorf("%+v, served by %s", qs, slot.Info().ID)
	}
	log.broken = false
	if !reg.ClearQuarantine(engine.LosslessID) || slot.Info().ID != engine.LosslessID {
		t.Errorf("%s serves after the quarantine was cleared", slot.Info().ID)
	}
	if _, err := slot.Assemble(t.Context(), p); err != nil {
		t.Error(err)
	}
}
