package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

func (c *cli) tenants() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tenants", Short: "Say what single tenants may use",
		Long: words(
			"Say what a tenant may use where that differs from the settings tenant-rate, tenant-concurrency,",
			"tenant-sessions and tenant-storage. Nodes follow within 10 seconds. Like keys, it talks to Postgres itself.",
		),
		RunE: func(*cobra.Command, []string) error { return usageError{errors.New("say tenants list, set or unset")} },
	}
	cmd.AddCommand(c.listTenants(), c.setTenant(), c.unsetTenant())
	return cmd
}

// tenantRow is an override as --json shows it; absent is the setting.
type tenantRow struct {
	Tenant      string   `json:"tenant"`
	Rate        *float64 `json:"rate,omitempty"`
	Concurrency *int64   `json:"concurrency,omitempty"`
	Sessions    *int64   `json:"sessions,omitempty"`
	Storage     *int64   `json:"storage,omitempty"`
}

func (c *cli) listTenants() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenants with limits of their own"}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		var all []access.Override
		err := c.withStore(ctx, cfg, func(s *store.Store) (err error) {
			all, err = s.Overrides(ctx)
			return err
		})
		if err != nil {
			return err
		}
		rows := make([]tenantRow, len(all))
		t := newTable(c.out, left("TENANT"), right("RATE"), right("CONCURRENCY"), right("SESSIONS"), right("STORAGE"))
		for i, o := range all {
			rows[i] = tenantRow{o.Tenant, o.Rate, o.Concurrency, o.Sessions, o.StorageBytes}
			rate := "-"
			if o.Rate != nil {
				rate = strconv.FormatFloat(*o.Rate, 'g', -1, 64)
			}
			t.row(oneLine(o.Tenant, 0), rate, numberOrDash(o.Concurrency), numberOrDash(o.Sessions), numberOrDash(o.StorageBytes))
		}
		if *asJSON {
			return printJSON(c.out, map[string]any{"tenants": rows})
		}
		return t.flush()
	})
}

func numberOrDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return thousands(*n)
}

func (c *cli) setTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set TENANT", Short: "Set limits of a tenant; what is not named stays", Args: oneArg,
		Long: "Set limits of a tenant. 0 is no limit; what is not named stays as it is.",
	}
	rate := cmd.Flags().Float64("rate", 0, "calls a second on one node")
	concurrency := cmd.Flags().Int64("concurrency", 0, "calls at one time on one node")
	sessions := cmd.Flags().Int64("sessions", 0, "sessions")
	var storage int64
	cmd.Flags().Var(config.Size(&storage), "storage", "bytes of events, such as 10GiB")
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		if err := access.CheckTenant(args[0]); err != nil {
			return usageError{err}
		}
		if *rate < 0 || *concurrency < 0 || *sessions < 0 {
			return usageError{errors.New("a limit is 0 or more")}
		}
		given := 0
		cmd.Flags().Visit(func(f *pflag.Flag) {
			switch f.Name {
			case "rate", "concurrency", "sessions", "storage":
				given++
			}
		})
		if given == 0 {
			return usageError{errors.New("give at least one of --rate, --concurrency, --sessions, --storage")}
		}
		return c.withStore(ctx, cfg, func(s *store.Store) error {
			o, err := s.Override(ctx, args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("rate") {
				o.Rate = rate
			}
			for name, f := range map[string]struct {
				to   **int64
				from *int64
			}{"concurrency": {&o.Concurrency, concurrency}, "sessions": {&o.Sessions, sessions}, "storage": {&o.StorageBytes, &storage}} {
				if cmd.Flags().Changed(name) {
					*f.to = f.from
				}
			}
			if err := s.SetOverride(ctx, o); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.out, "the limits of %s are set\n", oneLine(args[0], 0))
			return err
		})
	})
}

func (c *cli) unsetTenant() *cobra.Command {
	cmd := &cobra.Command{Use: "unset TENANT", Short: "Have the settings count for a tenant again", Args: oneArg}
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		return c.withStore(ctx, cfg, func(s *store.Store) error {
			if err := s.SetOverride(ctx, access.Override{Tenant: args[0]}); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.out, "the settings count for %s\n", oneLine(args[0], 0))
			return err
		})
	})
}
