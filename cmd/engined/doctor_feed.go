package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

// checkFeed looks whether the feed's order holds in this cluster.
func checkFeed(ctx context.Context, s *store.Store) check {
	ch := check{Name: "feed"}
	era, err := s.FeedEra(ctx)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "look at the log of Postgres"
	case !era.Open():
		ch.Detail = fmt.Sprintf("closed: era %d is of the cluster %s, this is %s; the database was restored or moved", era.Era, era.Cluster, era.Here)
		ch.Fix = "engined doctor --fix; consumers of the feed then start anew"
	case era.Here == "":
		ch.OK, ch.Detail = true, fmt.Sprintf("era %d; the server does not tell its cluster, so a restore elsewhere is not noticed: then run doctor --fix --new-era", era.Era)
	default:
		ch.OK, ch.Detail = true, fmt.Sprintf("era %d, of this cluster", era.Era)
	}
	return ch
}

// fixFeed opens a new era where the feed is closed, or in any case.
func (c *cli) fixFeed(ctx context.Context, cfg config.Config, always bool) error {
	if cfg.DatabaseURL == "" {
		return usageError{errors.New("--fix writes to Postgres: set --database-url or ENGINED_DATABASE_URL")}
	}
	if err := schemaFits(ctx, cfg.DatabaseURL); err != nil {
		return err
	}
	s, err := store.Open(ctx, aside(cfg, "doctor"))
	if err != nil {
		return err
	}
	defer s.Close()
	era, err := s.FeedEra(ctx)
	if err != nil || era.Open() && !always {
		return err
	}
	due := c.paced()
	era, err = s.OpenEra(ctx, func(sessions int64) {
		if due() {
			fmt.Fprintf(c.err, "feed: %s made older than the new era\n", plural(sessions, "session"))
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "feed: era %d is open; cursors of earlier ones are refused\n", era.Era)
	return nil
}
