package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/verify"
)

func (c *cli) verify(ctx context.Context, cfg config.Config, asJSON bool) error {
	if cfg.DatabaseURL == "" {
		return usageError{errors.New("--verify reads Postgres: set --database-url or ENGINED_DATABASE_URL (engined dev says the URL of its own when it starts)")}
	}
	if err := schemaFits(ctx, cfg.DatabaseURL); err != nil {
		return err
	}
	s, end, err := openSealed(ctx, cfg, aside(cfg, "verify"))
	if err != nil {
		return err
	}
	defer end()
	out := rowWriter{w: c.out, name: "differences"}
	due := c.paced()
	found := func(d verify.Difference) error {
		if asJSON {
			raw, err := json.Marshal(d) //nolint:gosec // a session key is no secret
			if err != nil {
				return err
			}
			return out.row(raw)
		}
		fmt.Fprintf(c.out, "✗ %s %s (%s): %s: %s\n", oneLine(d.Tenant, 0), oneLine(d.SessionKey, 0), d.SID, d.What, oneLine(d.Detail, 0))
		return nil
	}
	p, err := verify.All(ctx, s, found, func(p verify.Progress) {
		if due() {
			fmt.Fprintf(c.err, "%s, %s read\n", plural(p.Sessions, "session"), plural(p.Events, "event"))
		}
	})
	if err != nil {
		return err
	}
	if asJSON {
		if err := out.end(""); err != nil {
			return err
		}
	}
	if p.Failed > 0 {
		return fmt.Errorf("%s could not be read to the end; %s in all", plural(p.Failed, "session"), plural(p.Differences, "difference"))
	}
	if p.Differences > 0 {
		return fmt.Errorf("%s between the logs and what is stored beside them", plural(p.Differences, "difference"))
	}
	if !asJSON {
		fmt.Fprintf(c.out, "✓ %s with %s: all is as the logs say\n", plural(p.Sessions, "session"), plural(p.Events, "event"))
	}
	return nil
}
