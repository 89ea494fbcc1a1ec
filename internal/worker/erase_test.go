package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

// One session that cannot be erased stops retention neither by age nor by size.
func TestRetentionPassesOverWhatItCannotErase(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*worker.Config){
		"by age":  func(c *worker.Config) { c.Retention = store.Retention{Age: time.Nanosecond} },
		"by size": func(c *worker.Config) { c.Keeping = store.Keeping{Bytes: 1, Floor: time.Nanosecond} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			st, err := store.Open(t.Context(), store.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(st.Close)
			e := engine.NewLossless(engine.Config{Log: st})
			t.Cleanup(func() { _ = e.Dispose(context.Background()) })
			keys := []string{"first", "kept", "last"}
			for _, key := range keys {
				_, err := e.Ingest(t.Context(), contextengine.IngestParams{
					Session: contextengine.Session{Tenant: "t", SessionKey: key}, Message: []byte(`{"role":"user","content":"hello"}`),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			for _, q := range []string{
				`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$`,
				`CREATE TRIGGER keep BEFORE DELETE ON sessions FOR EACH ROW WHEN (OLD.session_key = 'kept') EXECUTE FUNCTION keep()`,
			} {
				if _, err := conn.Exec(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			srv, err := bus.StartEmbedded(t.Context(), bus.EmbeddedOptions{StoreDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { bustest.Stop(t, srv) })
			cfg := worker.Config{
				Debts: st, Bus: bustest.Connect(t, srv), Compactor: e.Compactor, Name: t.Name(), Eraser: st, RetentionInterval: 20 * time.Millisecond,
			}
			set(&cfg)
			w := worker.New(cfg)
			if err := w.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := w.Stop(ctx); err != nil {
					t.Error(err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				left := 0
				for _, key := range keys {
					_, err := st.Session(ctx, "t", key)
					switch {
					case err == nil:
						left++
					case !errors.Is(err, contextengine.ErrUnknownSession):
						t.Fatal(err)
					}
				}
				if left == 1 {
					break
				}
				select {
				case <-ctx.Done():
					t.Fatalf("%d sessions left", left)
				case <-tick.C:
				}
			}
			if _, err := st.Session(t.Context(), "t", "kept"); err != nil {
				t.Errorf("what could not be erased: %v", err)
			}
		})
	}
}
