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

func retentionOf(cfg config.Config) store.Retention {
	return store.Retention{Age: cfg.RetentionAge, Idle: cfg.RetentionIdle, Audit: cfg.Audit}
}

func keepingOf(cfg config.Config) store.Keeping {
	return store.Keeping{Bytes: cfg.RetentionSize, Floor: cfg.RetentionFloor, Audit: cfg.Audit}
}

// Why retention erases a session.
const (
	forTime = "time"
	forSize = "size"
)

// expiredRow is a session that retention erases.
type expiredRow struct {
	Tenant     string    `json:"tenant"`
	SessionKey string    `json:"sessionKey"`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
	// Rule is time or size.
	Rule string `json:"rule"`
	// Bytes are those of its events, told where size is the rule.
	Bytes int64 `json:"bytes,omitempty"`
	// Erased is false under --dry-run, and for a session that was written to or
	// erased while the command ran.
	Erased bool `json:"erased"`
	// Counts are the rows that went, by table.
	Counts map[string]int64 `json:"counts,omitempty"`
}

func (c *cli) retention() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retention", Short: "Erase the sessions that retention has expired, or list them",
		Long: words(
			"Look at all sessions of all tenants once and erase those that --retention-age and --retention-idle have expired,",
			"then, of tenants with more bytes than --retention-size or their own size (engined tenants set --keep), those that were",
			"idle the longest, as the workers do all the time. A session that a gateway holds the lease of stays. Talks to Postgres itself.",
		),
	}
	asJSON := jsonFlag(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "list what would be erased and erase nothing")
	return c.command(cmd, config.General|config.Database|config.Keeping, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		if cfg.DatabaseURL == "" {
			return usageError{errors.New("no database: set --database-url or ENGINED_DATABASE_URL")}
		}
		if err := schemaFits(ctx, cfg.DatabaseURL); err != nil {
			return err
		}
		s, end, err := openSealed(ctx, cfg, aside(cfg, "retention"))
		if err != nil {
			return err
		}
		defer end()
		if s.Vault() != nil && !*dryRun {
			if err := keysElsewhere(ctx, s.Vault(), s); err != nil {
				return err
			}
		}
		r := &retainer{store: s, time: retentionOf(cfg), size: keepingOf(cfg), dryRun: *dryRun, asJSON: *asJSON, gone: map[string]bool{}}
		switch set, err := r.anySet(ctx); {
		case err != nil:
			return err
		case !set:
			return usageError{errors.New("no retention is set: say --retention-age, --retention-idle or --retention-size")}
		}
		return c.retain(ctx, r)
	})
}

// retainer applies the rules once.
type retainer struct {
	store          *store.Store
	time           store.Retention
	size           store.Keeping
	dryRun, asJSON bool
	show           func(expiredRow) error
	// gone are the sessions that the first rule takes, by their sid: under dryRun they
	// still are there for the second one to see.
	gone  map[string]bool
	found int
	// erased counts what went.
	erased int
}

func (r *retainer) anySet(ctx context.Context) (bool, error) {
	if r.time.Any() || r.size.Bytes > 0 {
		return true, nil
	}
	all, err := r.store.Overrides(ctx)
	for _, o := range all {
		if o.KeepBytes != nil && *o.KeepBytes > 0 {
			return true, err
		}
	}
	return false, err
}

func (c *cli) retain(ctx context.Context, r *retainer) error {
	out := rowWriter{w: c.out, name: "sessions"}
	t := newTable(c.out, left("TENANT"), right("AGE"), right("IDLE"), right("BYTES"), left(""), left("SESSION"))
	r.show = func(row expiredRow) error {
		if r.asJSON {
			raw, err := json.Marshal(row) //nolint:gosec // a session key is no secret
			if err != nil {
				return err
			}
			return out.row(raw)
		}
		state, bytes := map[string]string{forTime: "expired", forSize: "over size"}[row.Rule], ""
		if row.Erased {
			state = "erased"
		}
		if row.Bytes > 0 {
			bytes = bytesText(row.Bytes)
		}
		t.row(oneLine(row.Tenant, 0), age(c.now(), row.CreatedAt), age(c.now(), row.UpdatedAt), bytes, state, oneLine(row.SessionKey, 0))
		return nil
	}
	if err := errors.Join(r.byTime(ctx), r.bySize(ctx)); err != nil {
		return err
	}
	if r.asJSON {
		return out.end("")
	}
	if err := t.flush(); err != nil {
		return err
	}
	if r.dryRun {
		fmt.Fprintf(c.out, "%s would be erased\n", plural(r.found, "session"))
		return nil
	}
	fmt.Fprintf(c.out, "%s erased\n", plural(r.erased, "session"))
	return nil
}

const retentionPage = 500

func (r *retainer) byTime(ctx context.Context) error {
	for at, more := (store.RetentionCursor{}), r.time.Any(); more; {
		expired, next, again, err := r.store.ExpiredAfter(ctx, r.time, at, retentionPage)
		if err != nil {
			return err
		}
		for _, x := range expired {
			r.gone[x.SID.String()] = true
			err := r.one(x, forTime, 0, func() (store.Erasure, bool, error) { return r.store.EraseExpired(ctx, r.time, x) })
			if err != nil {
				return err
			}
		}
		at, more = next, again
	}
	return nil
}

func (r *retainer) bySize(ctx context.Context) error {
	for after, more := "", true; more; {
		over, next, again, err := r.store.Oversized(ctx, r.size, after, retentionPage)
		if err != nil {
			return err
		}
		for _, o := range over {
			if err := r.shrink(ctx, o); err != nil {
				return err
			}
		}
		after, more = next, again
	}
	return nil
}

// shrink goes through a tenant's sessions until the rest fits.
func (r *retainer) shrink(ctx context.Context, o store.Oversize) error {
	const page = 100
	for at, more := (store.Idle{}), true; more; {
		idle, err := r.store.OldestIdle(ctx, r.size, o.Tenant, at, page)
		if err != nil {
			return err
		}
		for _, x := range idle {
			if o.Bytes <= o.Keep {
				return nil
			}
			at = x
			o.Bytes -= x.Bytes
			if r.gone[x.SID.String()] {
				continue
			}
			err := r.one(x.Expired, forSize, x.Bytes, func() (store.Erasure, bool, error) { return r.store.EraseOversize(ctx, r.size, o, x) })
			if err != nil {
				return err
			}
		}
		more = len(idle) == page
	}
	return nil
}

func (r *retainer) one(x store.Expired, rule string, bytes int64, erase func() (store.Erasure, bool, error)) error {
	row := expiredRow{Tenant: x.Tenant, SessionKey: x.Key, CreatedAt: x.CreatedAt.UTC(), UpdatedAt: x.UpdatedAt.UTC(), Rule: rule, Bytes: bytes}
	if !r.dryRun {
		e, ok, err := erase()
		if err != nil {
			return err
		}
		if row.Erased = ok; ok {
			row.Counts = e.Counts
			r.erased++
		}
	}
	r.found++
	return r.show(row)
}
