package testdb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/migrations"
)

// maxConnections of a private cluster: many packages and many parallel tests
// with a pool each.
const maxConnections = 300

// dropTimeout bounds the cleanup of a test's database.
const dropTimeout = time.Minute

// New returns the DSN of a fresh, migrated database that is dropped when the
// test ends.
func New(t testing.TB) string {
	t.Helper()
	return From(t, migrations.FS)
}

// Empty returns the DSN of a fresh database without a schema.
func Empty(t testing.TB) string {
	t.Helper()
	s := running(t)
	name, err := s.create(t.Context(), "")
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	return s.lend(t, name)
}

// From returns the DSN of a fresh database with the given goose migrations.
func From(t testing.TB, files fs.FS) string {
	t.Helper()
	s := running(t)
	template, err := s.template(t.Context(), files)
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	name, err := s.create(t.Context(), template)
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	return s.lend(t, name)
}

// Cluster returns a private cluster that ends with the test, for tests that
// stop their server or measure what other tests would disturb.
func Cluster(t testing.TB) *devpg.Cluster {
	t.Helper()
	dir, err := os.MkdirTemp(scratch(), "engined-testpg-")
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	c, err := devpg.Start(t.Context(), devpg.Options{
		DataDir: dir, Fast: true, Ephemeral: true, MaxConnections: maxConnections, Settings: settings(),
	})
	if err != nil {
		t.Fatalf("testdb: %v", errors.Join(err, os.RemoveAll(dir)))
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("testdb: %v", err)
		}
	})
	return c
}

// settings bound the space that log segments take.
func settings() map[string]string {
	return map[string]string{"max_wal_size": "256MB", "min_wal_size": "32MB"}
}

// connected is the server of this process: found once, kept to its end.
var connected = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	if dsn := os.Getenv("DATABASE_URL"); dsn != "" {
		return newServer(ctx, dsn, true)
	}
	dsn, membership, err := join(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, dsn, false)
	if err != nil {
		return nil, err
	}
	s.membership = membership
	return s, nil
})

func running(t testing.TB) *server {
	t.Helper()
	s, err := connected()
	if err != nil {
		t.Fatalf("testdb: tests need a Postgres: %v", err)
	}
	return s
}

// lend drops the database with the test and returns its DSN.
func (s *server) lend(t testing.TB, name string) string {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("testdb: %v", err)
		}
	})
	dsn, err := withDatabase(s.dsn, name)
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	return dsn
}
