package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
)

const tenant = "quality"

// windowEngine is what the engines that are compared have in common.
type windowEngine interface {
	contextengine.Engine
	contextengine.BatchIngester
	Dispose(ctx context.Context) error
}

// bench is a private Postgres, and what runs on it.
type bench struct {
	postgres *devpg.Cluster
	store    *store.Store
	engines  map[string]windowEngine
	indexer  *retrieval.Indexer
	searcher *retrieval.Searcher
}

func open(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp("", "engined-quality-")
	if err != nil {
		return nil, err
	}
	pg, err := devpg.Start(ctx, devpg.Options{DataDir: dir, Fast: true, Ephemeral: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b := &bench{postgres: pg}
	url, err := pg.EnsureDatabase(ctx, "quality")
	if err == nil {
		_, err = store.Migrate(ctx, url, nil)
	}
	if err == nil {
		b.store, err = store.Open(ctx, store.Config{URL: url})
	}
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	cfg := engine.Config{Log: b.store}
	b.engines = map[string]windowEngine{"lossless": engine.NewLossless(cfg), "rolling": engine.NewRolling(cfg)}
	b.indexer = retrieval.NewIndexer(b.store, nil)
	b.searcher = retrieval.NewSearcher(b.store, b.indexer)
	return b, nil
}

func (b *bench) close(ctx context.Context) error {
	var errs []error
	for _, e := range b.engines {
		errs = append(errs, e.Dispose(ctx))
	}
	if b.store != nil {
		b.store.Close()
	}
	return errors.Join(append(errs, b.postgres.Stop(ctx))...)
}

func session(key string) contextengine.Session {
	return contextengine.Session{Tenant: tenant, SessionKey: key}
}

// say stores turns and tells which turn each seq is.
func (b *bench) say(ctx context.Context, key string, turns []turn) (map[int64]int, error) {
	raws := make([]json.RawMessage, len(turns))
	for i := range turns {
		raws[i] = turns[i].message()
	}
	res, err := b.engines["lossless"].IngestBatch(ctx, contextengine.IngestBatchParams{Session: session(key), Messages: raws})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	seqs := make(map[int64]int, len(turns))
	for i, seq := range res.Seqs {
		seqs[seq] = i
	}
	return seqs, nil
}

// indexed brings the index up to the log.
func (b *bench) indexed(ctx context.Context) error {
	for {
		state, err := b.store.SearchState(ctx, tenant, nil)
		if err != nil || !state.Behind {
			return err
		}
		if _, err := b.indexer.Once(ctx); err != nil {
			return err
		}
	}
}
