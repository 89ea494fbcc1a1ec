package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/internal/store"
)

// check is one finding. Fix says what to do about it and is empty when all is
// well.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// staleDebt is the age at which a debt says that nobody works.
const staleDebt = 10 * time.Minute

func (c *cli) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check Postgres, the schema, NATS and what is owed, each with its fix",
		Long: words(
			"Check what engined needs. Where a database is set (and --nats-url) it looks at Postgres, schema, feed, debts and NATS",
			"themselves; with --url, or without a database, at a node: whether it is ready, what it reaches, engines that are set",
			"aside and models that are left alone. With --database-url and --url at both. Exits 1 when something is wrong.",
			"",
			"With --verify it folds the log of every session instead, while nodes go on serving, and compares heads, offsets,",
			"recorded states, the facts of messages, bodies, keys and debts. It tells each difference and changes nothing.",
			"",
			"With --fix it opens a new era of the feed first, if the database was restored into another cluster: what is in the",
			"log comes first, in its order, readers with an older cursor are told to start anew. Appends go on meanwhile.",
			"--new-era does so in any case; after a recovery that went back in time.",
		),
	}
	asJSON := jsonFlag(cmd)
	all := cmd.Flags().Bool("verify", false, "fold every session's log and compare what is stored beside it; reads everything")
	fix := cmd.Flags().Bool("fix", false, "open a new era of the feed where the database is in another cluster")
	newEra := cmd.Flags().Bool("new-era", false, "with --fix: open a new era in any case")
	scope := config.General | config.Database | config.Bus | config.Client
	return c.command(cmd, scope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		if *all {
			return c.verify(ctx, cfg, *asJSON)
		}
		if *newEra && !*fix {
			return usageError{errors.New("--new-era goes with --fix")}
		}
		if *fix {
			if err := c.fixFeed(ctx, cfg, *newEra); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		var checks []check
		asksNode, asksDatabase := cmd.Flags().Changed("url"), cmd.Flags().Changed("database-url")
		if cfg.DatabaseURL != "" && (asksDatabase || !asksNode) {
			checks = append(checkPostgres(ctx, cfg), checkNATS(ctx, cfg))
		}
		if asksNode || len(checks) == 0 {
			checks = append(checks, checkNode(ctx, cfg)...)
		}
		return c.report(checks, *asJSON)
	})
}

func (c *cli) report(checks []check, asJSON bool) error {
	wrong := 0
	for _, ch := range checks {
		if !ch.OK {
			wrong++
		}
	}
	if asJSON {
		if err := printJSON(c.out, struct {
			OK     bool    `json:"ok"`
			Checks []check `json:"checks"`
		}{wrong == 0, checks}); err != nil {
			return err
		}
	} else {
		for _, ch := range checks {
			mark := "✓"
			if !ch.OK {
				mark = "✗"
			}
			fmt.Fprintf(c.out, "%s %-10s %s\n", mark, ch.Name, oneLine(ch.Detail, 0))
			if ch.Fix != "" {
				fmt.Fprintf(c.out, "             fix: %s\n", ch.Fix)
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s of %d failed", plural(wrong, "check"), len(checks))
	}
	return nil
}

func checkNode(ctx context.Context, cfg config.Config) []check {
	ch := check{Name: "node"}
	cl, err := node(cfg)
	if err != nil {
		ch.Detail = err.Error()
		return []check{ch}
	}
	defer cl.Close()
	ready, err := cl.Ready(ctx)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "start a node (engined dev, engined serve), name one with --url, or give --database-url to check that"
	case !ready.Ready:
		ch.Detail, ch.Fix = cl.URL()+" is not ready: "+ready.Why(), "what is not ready needs a look; run doctor with --database-url and --nats-url"
	default:
		ch.OK, ch.Detail = true, cl.URL()+" is ready"
	}
	if err != nil {
		return []check{ch}
	}
	checks := []check{ch}
	for _, r := range ready.Checks {
		of := check{Name: r.Name, OK: r.OK, Detail: r.Detail}
		switch {
		case r.OK:
			of.Detail = "the node reaches it"
		case r.Name == "nats":
			of.Fix = "turns are served without NATS, compactions wait; run doctor with --database-url and --nats-url to look at it"
		}
		checks = append(checks, of)
	}
	return append(checks, checkEngines(ctx, cl), checkSummarizers(ctx, cl))
}

// fixOf says what to do about a node's refusal.
func fixOf(err error) string {
	if p := (*client.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusServiceUnavailable {
		return "the node cannot serve now; is its Postgres there? `engined health` says"
	}
	return "does --key belong to this node?"
}

// checkEngines looks for engines that a node has set aside: turns are served
// without them, but not by whom the operator chose.
func checkEngines(ctx context.Context, cl *client.Client) check {
	ch := check{Name: "engines"}
	list, _, err := cl.Engines(ctx)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), fixOf(err)
	case len(list.Quarantines) > 0:
		q := list.Quarantines[0]
		ch.Detail = fmt.Sprintf("%s set aside, %s serves; %s: %s failed: %s",
			plural(len(list.Quarantines), "engine"), list.Serving, q.EngineID, q.Operation, q.Reason)
		ch.Fix = "when the cause is gone: engined engines clear " + q.EngineID
		if q.Operation == "resolve" {
			ids := make([]string, len(list.Engines))
			for i, e := range list.Engines {
				ids[i] = e.ID
			}
			ch.Fix = "the setting engine names none of " + strings.Join(ids, ", ")
		}
	default:
		ch.OK, ch.Detail = true, list.Serving+" serves"
	}
	return ch
}

// checkSummarizers looks for models that are left alone: compactions wait for
// them, or a rule writes in their place.
func checkSummarizers(ctx context.Context, cl *client.Client) check {
	ch := check{Name: "models"}
	list, _, err := cl.Summarizers(ctx)
	if err != nil {
		ch.Detail, ch.Fix = err.Error(), fixOf(err)
		return ch
	}
	may := 0
	for _, s := range list.Summarizers {
		switch stateOf(s) {
		case former:
			continue
		case asked:
			may++
			continue
		}
		ch.Detail = fmt.Sprintf("%s is %s after %s: %s", s.Name, stateOf(s), plural(s.Failures, "failure"), s.LastError)
		ch.Fix = "engined summarizers shows until when; access means a wrong key or model, busy a rate limit, slow and down the provider"
	}
	switch {
	case ch.Detail != "":
	case may == 0:
		ch.OK, ch.Detail = true, "none is set: the extractive rule writes"
	default:
		ch.OK, ch.Detail = true, plural(may, "summarizer")+" may be asked"
	}
	return ch
}

func checkPostgres(ctx context.Context, cfg config.Config) []check {
	pg := check{Name: "postgres"}
	s, err := store.Open(ctx, aside(cfg, "doctor"))
	if err != nil {
		pg.Detail, pg.Fix = strings.TrimPrefix(err.Error(), "postgres: "), "is Postgres running, and are host, user, password and database of --database-url right?"
		return []check{pg}
	}
	defer s.Close()
	version, err := s.ServerVersion(ctx)
	major, _ := strconv.Atoi(strings.SplitN(version, ".", 2)[0]) // an odd version counts as old
	switch {
	case err != nil:
		pg.Detail, pg.Fix = err.Error(), "Postgres went away; look at its log"
	case major < devpg.MinMajor:
		pg.Detail, pg.Fix = "PostgreSQL "+version, fmt.Sprintf("engined needs PostgreSQL %d or newer", devpg.MinMajor)
	default:
		pg.OK, pg.Detail = true, "PostgreSQL "+version
	}
	schema := checkSchema(ctx, cfg)
	if !schema.OK {
		return []check{pg, schema}
	}
	return []check{pg, schema, checkFeed(ctx, s), checkDebts(ctx, s), checkSearch(ctx, s), checkEncryption(ctx, cfg, s)}
}

func checkSchema(ctx context.Context, cfg config.Config) check {
	ch := check{Name: "schema"}
	current, target, err := store.Schema(ctx, cfg.DatabaseURL)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "may the role of --database-url create tables?"
	case current < target:
		ch.Detail, ch.Fix = fmt.Sprintf("at %d, this program needs %d", current, target), "engined migrate up"
	case current > target:
		ch.Detail, ch.Fix = fmt.Sprintf("at %d, newer than this program's %d", current, target), "use the newer engined"
	default:
		ch.OK, ch.Detail = true, fmt.Sprintf("up to date at %d", current)
	}
	return ch
}

func checkDebts(ctx context.Context, s *store.Store) check {
	ch := check{Name: "debts"}
	owed, oldest, err := s.OwedCompactions(ctx)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "look at the log of Postgres"
	case oldest > staleDebt:
		ch.Detail = fmt.Sprintf("compactions owed by %s, the oldest for %s", plural(owed, "session"), oldest.Round(time.Second))
		ch.Fix = "no worker seems to work: start one (engined worker, or serve --worker) and look at its log"
	default:
		ch.OK, ch.Detail = true, "compactions owed by "+plural(owed, "session")
	}
	return ch
}

func checkNATS(ctx context.Context, cfg config.Config) check {
	ch := check{Name: "nats"}
	b, err := bus.Connect(ctx, bus.Options{
		URL: cfg.NATSURL, Name: "engined-doctor", Replicas: cfg.NATSReplicas, CredsFile: cfg.NATSCreds,
		CAFile: cfg.NATSCA, CertFile: cfg.NATSCert, KeyFile: cfg.NATSKey, Observe: true,
	})
	if err != nil {
		ch.Detail, ch.Fix = err.Error(), "correct the nats- settings"
		return ch
	}
	defer b.Close(ctx)
	ch.OK, ch.Detail = b.Healthy()
	switch {
	case ch.OK:
	case b.Up():
		ch.Fix = "start a node or a worker: they make the streams; if one runs, its log says why it could not. Without them turns are served, compactions wait"
	default:
		ch.Detail = bus.Hosts(cfg.NATSURL) + ": " + ch.Detail
		ch.Fix = "is NATS running with JetStream (nats-server -js), and is --nats-url right? Turns are served without it, compactions wait"
	}
	return ch
}
