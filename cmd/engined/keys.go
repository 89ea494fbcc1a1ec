package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

// adminScope is of the commands that look into Postgres themselves, be it
// dev's private one.
const adminScope = config.General | config.Database | config.Dev

func (c *cli) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list and revoke API keys",
		Long: words(
			"API keys say whose sessions a request is about and what it may do. They are kept in Postgres, as a",
			"hash: a key is shown once, when it is made. These commands talk to Postgres itself (--database-url, or",
			"the private one of the dev that runs on --data), so no key is needed to make the first one.",
		),
		RunE: func(*cobra.Command, []string) error { return usageError{errors.New("say keys create, list or revoke")} },
	}
	cmd.AddCommand(c.createKey(), c.listKeys(), c.revokeKey())
	return cmd
}

func (c *cli) createKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Make a key and print it, this once",
		Long: words(
			"Make a key and print it: the key alone, or with --json an object that also says its id. Scopes:",
			"  gateway  hosts: write turns, ask for windows, read, erase a session",
			"  worker   compact and maintain sessions, read",
			"  analyst  read everything of the tenant, change nothing",
			"  admin    all of that, erase many sessions at once, read the audit log, clear quarantines",
		),
	}
	var tenant, name, expires string
	var scopes []string
	cmd.Flags().StringVar(&tenant, "tenant", "", "whose sessions it opens")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "gateway, worker, analyst or admin; several separated by commas")
	cmd.Flags().StringVar(&name, "name", "", "what it is for, as listings show it")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: a time such as 90d, 12h, or a date such as 2030-01-31 or 2030-01-31T12:00:00Z; never by default")
	asJSON := jsonFlag(cmd)
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		set, err := access.ParseScopes(scopes)
		if err != nil {
			return usageError{fmt.Errorf("--scope: %w", err)}
		}
		if err := access.CheckTenant(tenant); err != nil {
			return usageError{fmt.Errorf("--tenant: %w", err)}
		}
		end, err := parseExpiry(expires, time.Now())
		if err != nil {
			return usageError{fmt.Errorf("--expires: %w", err)}
		}
		key, token := access.NewKey(tenant, oneLine(name, 0), set, time.Now(), end)
		if err := c.withStore(ctx, cfg, func(s *store.Store) error { return s.CreateKey(ctx, key) }); err != nil {
			return err
		}
		if !*asJSON {
			_, err = fmt.Fprintln(c.out, token)
			return err
		}
		return printJSON(c.out, struct {
			Key string `json:"key"`
			keyRow
		}{token, rowOfKey(&key)})
	})
}

// keyRow is a key as --json shows it.
type keyRow struct {
	ID         string     `json:"id"`
	Tenant     string     `json:"tenant"`
	Scopes     []string   `json:"scopes"`
	Name       string     `json:"name,omitempty"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt,omitempty"`
	RevokedAt  *time.Time `json:"revokedAt,omitempty"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
}

func rowOfKey(k *access.Key) keyRow {
	moment := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	return keyRow{
		ID: k.ID, Tenant: k.Tenant, Scopes: k.Scopes.Names(), Name: k.Name, CreatedAt: k.CreatedAt.UTC(),
		ExpiresAt: moment(k.ExpiresAt), RevokedAt: moment(k.RevokedAt), LastUsedAt: moment(k.LastUsedAt),
	}
}

func (c *cli) listKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys, without what opens them",
		Long: "List the keys of all tenants, or of one. Uses are noted every half a minute.",
	}
	tenant := cmd.Flags().String("tenant", "", "of this tenant alone")
	asJSON := jsonFlag(cmd)
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		var keys []access.Key
		err := c.withStore(ctx, cfg, func(s *store.Store) (err error) {
			keys, err = s.Keys(ctx, *tenant)
			return err
		})
		if err != nil {
			return err
		}
		rows := make([]keyRow, len(keys))
		t := newTable(c.out, left("ID"), left("TENANT"), left("SCOPES"), left("STATE"), right("AGE"), right("USED"), left("NAME"))
		now := c.now()
		for i := range keys {
			k := &keys[i]
			rows[i] = rowOfKey(k)
			used := "-"
			if !k.LastUsedAt.IsZero() {
				used = age(now, k.LastUsedAt)
			}
			t.row(k.ID, oneLine(k.Tenant, 0), strings.Join(k.Scopes.Names(), ","), stateOfKey(k, now), age(now, k.CreatedAt), used, oneLine(k.Name, 0))
		}
		if *asJSON {
			return printJSON(c.out, map[string]any{"keys": rows})
		}
		return t.flush()
	})
}

func stateOfKey(k *access.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case k.ExpiresAt.IsZero():
		return "active"
	case !now.Before(k.ExpiresAt):
		return "expired"
	}
	return "until " + k.ExpiresAt.UTC().Format(time.DateOnly)
}

func (c *cli) revokeKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "End a key", Args: oneArg,
		Long: words(
			"End a key, named by its id as keys list shows it, or by the key itself. It ceases to count on every node",
			"within 5 seconds, and streams it opened end within 15 more. Exits 0 also when it was revoked before.",
		),
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		id := args[0]
		if of, ok := access.ID(id); ok {
			id = of
		}
		var key access.Key
		err := c.withStore(ctx, cfg, func(s *store.Store) (err error) {
			key, err = s.RevokeKey(ctx, id, time.Now())
			return err
		})
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c.out, rowOfKey(&key))
		}
		_, err = fmt.Fprintf(c.out, "%s of %s is revoked\n", key.ID, oneLine(key.Tenant, 0))
		return err
	})
}

// parseExpiry reads a moment, or a time from now; the zero time is never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			if !at.After(now) {
				return time.Time{}, fmt.Errorf("%s has passed", text)
			}
			return at, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time such as 90d or 12h nor a date such as 2030-01-31", text)
}

// withStore opens the Postgres of the settings, be it dev's private one.
func (c *cli) withStore(ctx context.Context, cfg config.Config, do func(*store.Store) error) error {
	if cfg.DatabaseURL == "" {
		url, err := c.devDatabase(cfg)
		if err != nil {
			return err
		}
		cfg.DatabaseURL = url
	}
	if err := schemaFits(ctx, cfg.DatabaseURL); err != nil {
		return err
	}
	s, err := store.Open(ctx, aside(cfg, "admin"))
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// databaseFile names, in dev's data directory, the Postgres of the dev that
// runs on it. There is no password in it: who may open the socket is let in.
const databaseFile = "database-url"

func (c *cli) devDatabase(cfg config.Config) (string, error) {
	dir := cfg.Data
	if dir == "" {
		var err error
		if dir, err = defaultData(c.lookupEnv); err != nil {
			return "", errNoDatabase
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, databaseFile))
	if err != nil {
		return "", usageError{fmt.Errorf("no database: give --database-url, or --data of a dev that runs (none does on %s)", dir)}
	}
	return strings.TrimSpace(string(text)), nil
}
