package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
)

const tenant = "bench"

// bench is a private Postgres, and what runs on it.
type bench struct {
	postgres *devpg.Cluster
	store    *store.Store
	engine   *engine.Lossless
	indexer  *retrieval.Indexer
	searcher *retrieval.Searcher
	stages   *stages
	plain    *pgx.Conn

	messages, sessions, parts int64
	bytes                     int64
	indexedIn                 time.Duration
	version                   string
}

// open connects to a database, or starts a server for one, which is removed
// with it.
func open(ctx context.Context, url string) (*bench, error) {
	b := &bench{}
	var err error
	if url == "" {
		dir, err := os.MkdirTemp("", "engined-search-")
		if err != nil {
			return nil, err
		}
		b.postgres, err = devpg.Start(ctx, devpg.Options{
			DataDir: dir, Ephemeral: true, Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"},
		})
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		url, err = b.postgres.EnsureDatabase(ctx, "search")
		if err != nil {
			return nil, errors.Join(err, b.close(ctx))
		}
	}
	_, err = store.Migrate(ctx, url, nil)
	if err == nil {
		b.store, err = store.Open(ctx, store.Config{URL: url, RowSecurity: true})
	}
	if err == nil {
		b.plain, err = pgx.Connect(ctx, url)
	}
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	b.engine = engine.NewLossless(engine.Config{Log: b.store})
	b.indexer = retrieval.NewIndexer(b.store, nil)
	b.stages = &stages{Reader: b.store}
	b.stages.reset()
	b.searcher = retrieval.NewSearcher(b.stages, b.indexer)
	return b, b.plain.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&b.version)
}

func (b *bench) close(ctx context.Context) error {
	var errs []error
	if b.engine != nil {
		errs = append(errs, b.engine.Dispose(ctx))
	}
	if b.plain != nil {
		errs = append(errs, b.plain.Close(ctx))
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.postgres != nil {
		errs = append(errs, b.postgres.Stop(ctx))
	}
	return errors.Join(errs...)
}

// count reads the size of the corpus, 0 of a new database.
func (b *bench) count(ctx context.Context) error {
	err := b.plain.QueryRow(ctx, `SELECT (SELECT count(*) FROM events WHERE type = 1), (SELECT count(*) FROM sessions),
		count(*), coalesce(sum(octet_length(body)), 0) FROM search_parts`).Scan(&b.messages, &b.sessions, &b.parts, &b.bytes)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}
