package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/summarizers"
)

func (c *cli) tenants() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tenants", Short: "Say what single tenants may use",
		Long: words(
			"Say what a tenant may use where that differs from the settings tenant-rate, tenant-concurrency,",
			"tenant-sessions, tenant-storage, tenant-spend and retention-size. Nodes follow within 10 seconds, workers",
			"with their next call of a model and their next look for what retention has to erase. Like keys, it talks to",
			"Postgres itself.",
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
	SpendMicros *int64   `json:"spendMicros,omitempty"`
	Keep        *int64   `json:"keep,omitempty"`
	// SpentMicros is what summaries cost since midnight UTC.
	SpentMicros int64 `json:"spentMicros"`
}

func (c *cli) listTenants() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the tenants with limits of their own",
		Long: "List the tenants with limits of their own: - is what the setting says, none is no limit.",
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		var all []access.Override
		spent := map[string]int64{}
		err := c.withStore(ctx, cfg, func(s *store.Store) (err error) {
			if all, err = s.Overrides(ctx); err != nil {
				return err
			}
			spenders, err := s.SpendersToday(ctx, 0)
			for _, t := range spenders {
				spent[t.Tenant] = t.CostMicros
			}
			return err
		})
		if err != nil {
			return err
		}
		rows := make([]tenantRow, len(all))
		t := newTable(c.out, left("TENANT"), right("RATE"), right("CONCURRENCY"), right("SESSIONS"), right("STORAGE"), right("KEEP"), right("SPEND"), right("SPENT TODAY"))
		for i, o := range all {
			rows[i] = tenantRow{o.Tenant, o.Rate, o.Concurrency, o.Sessions, o.StorageBytes, o.SpendMicros, o.KeepBytes, spent[o.Tenant]}
			t.row(oneLine(o.Tenant, 0), limitText(o.Rate, func(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }),
				limitText(o.Concurrency, thousands), limitText(o.Sessions, thousands), limitText(o.StorageBytes, bytesText),
				limitText(o.KeepBytes, bytesText), limitText(o.SpendMicros, usd), cmp.Or(usd(spent[o.Tenant]), "-"))
		}
		if *asJSON {
			return printJSON(c.out, map[string]any{"tenants": rows})
		}
		return t.flush()
	})
}

// limitText writes a limit of a tenant's own: - where the setting counts, none
// where there is no limit.
func limitText[T int64 | float64](n *T, text func(T) string) string {
	switch {
	case n == nil:
		return "-"
	case *n == 0:
		return "none"
	}
	return text(*n)
}

// mostDollars is beyond anybody's day.
const mostDollars = 1e6

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
	var keep int64
	cmd.Flags().Var(config.Size(&keep), "keep", "bytes of events that retention keeps")
	spend := cmd.Flags().Float64("spend", 0, "US dollars a day for summaries")
	return c.command(cmd, adminScope, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		if err := access.CheckTenant(args[0]); err != nil {
			return usageError{err}
		}
		if !(*rate >= 0 && *rate <= math.MaxInt32) || *concurrency < 0 || *sessions < 0 || !(*spend >= 0 && *spend <= mostDollars) {
			return usageError{errors.New("a limit is 0 or more")}
		}
		given := 0
		cmd.Flags().Visit(func(f *pflag.Flag) {
			switch f.Name {
			case "rate", "concurrency", "sessions", "storage", "spend", "keep":
				given++
			}
		})
		if given == 0 {
			return usageError{errors.New("give at least one of --rate, --concurrency, --sessions, --storage, --spend, --keep")}
		}
		spendMicros := summarizers.Micros(*spend)
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
			}{"concurrency": {&o.Concurrency, concurrency}, "sessions": {&o.Sessions, sessions}, "storage": {&o.StorageBytes, &storage}, "spend": {&o.SpendMicros, &spendMicros}, "keep": {&o.KeepBytes, &keep}} {
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
