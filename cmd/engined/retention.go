package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

// expiredRow is a session that the policy has expired.
type expiredRow struct {
	Tenant     string    `json:"tenant"`
	SessionKey string    `json:"sessionKey"`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
	// Erased is false under --dry-run, and for a session that was written to or
	// erased while the command ran.
	Erased bool `json:"erased"`
}

func (c *cli) retention() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retention", Short: "Erase the sessions that retention has expired, or list them",
		Long: words(
			"Look at all sessions of all tenants once and erase those that --retention-age and --retention-idle have expired,",
			"as the workers do all the time. A session that a gateway holds the lease of stays. Talks to Postgres itself.",
		),
	}
	asJSON := jsonFlag(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "list what would be erased and erase nothing")
	return c.command(cmd, config.General|config.Database|config.Keeping, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		policy := store.Retention{Age: cfg.RetentionAge, Idle: cfg.RetentionIdle}
		switch {
		case !policy.Any():
			return usageError{errors.New("no retention is set: say --retention-age or --retention-idle")}
		case cfg.DatabaseURL == "":
			return usageError{errors.New("no database: set --database-url or ENGINED_DATABASE_URL")}
		}
		s, err := store.Open(ctx, store.Config{URL: cfg.DatabaseURL, MaxConns: 2, PgBouncer: cfg.PgBouncer, ApplicationName: "engined-retention"})
		if err != nil {
			return err
		}
		defer s.Close()
		return c.retain(ctx, s, policy, *dryRun, *asJSON)
	})
}

func (c *cli) retain(ctx context.Context, s *store.Store, policy store.Retention, dryRun, asJSON bool) error {
	const page = 500
	out := rowWriter{w: c.out, name: "sessions"}
	t := newTable(c.out, left("TENANT"), left("SESSION"), right("AGE"), right("IDLE"), left(""))
	found, gone := 0, 0
	for at, more := (store.RetentionCursor{}), true; more; {
		expired, next, again, err := s.ExpiredAfter(ctx, policy, at, page)
		if err != nil {
			return err
		}
		for _, x := range expired {
			row := expiredRow{Tenant: x.Tenant, SessionKey: x.Key, CreatedAt: x.CreatedAt.UTC(), UpdatedAt: x.UpdatedAt.UTC()}
			if !dryRun {
				if _, row.Erased, err = s.EraseExpired(ctx, policy, x); err != nil {
					return err
				}
			}
			found++
			state := "expired"
			if row.Erased {
				gone, state = gone+1, "erased"
			}
			if asJSON {
				raw, err := json.Marshal(row) //nolint:gosec // a session key is no secret
				if err == nil {
					err = out.row(raw)
				}
				if err != nil {
					return err
				}
				continue
			}
			t.row(oneLine(x.Tenant, 0), middle(oneLine(x.Key, 0), keyColumns-8), age(c.now(), x.CreatedAt), age(c.now(), x.UpdatedAt), state)
		}
		at, more = next, again
	}
	if asJSON {
		return out.end("")
	}
	if err := t.flush(); err != nil {
		return err
	}
	if dryRun {
		fmt.Fprintf(c.out, "%s would be erased\n", plural(found, "session"))
		return nil
	}
	fmt.Fprintf(c.out, "%s erased\n", plural(gone, "session"))
	return nil
}
