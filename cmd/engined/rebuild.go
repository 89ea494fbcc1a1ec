package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/rebuild"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
)

// rebuildParts are what --what may name, in the order in which they are made.
var rebuildParts = []string{"facts", "states", "keys", "search", "stream"}

func (c *cli) rebuild() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rebuild", Short: "Derive anew from the logs what is stored beside them",
		Long: words(
			"Derive from the logs what doctor --verify compares, and write it where it differs:",
			"  facts   of events: epoch, role, tokens, flags, links, offsets (also after a newer reader)",
			"  states  recorded states, sessions' rows, debts",
			"  keys    of committed turns, and keys that lost their event",
			"  search  the search index: dropped and written again",
			"  stream  what is owed becomes due at once, so that workers publish it again",
			"Without --what all of it; with --session facts, states and keys of that session. Nodes may serve meanwhile: a",
			"session is locked only while something of it is written. Running it again changes nothing.",
			"",
			"What a log does not tell, such as lost events or bytes, is named and left as it is; then the exit code is 1.",
			"Talks to Postgres itself. Give it the nodes' own default-token-budget, compaction-threshold and model-windows: debts follow them.",
		),
	}
	asJSON := jsonFlag(cmd)
	session := cmd.Flags().String("session", "", "only this session, of whatever tenant")
	what := cmd.Flags().StringSlice("what", nil, "some of "+strings.Join(rebuildParts, ", "))
	dryRun := cmd.Flags().Bool("dry-run", false, "say what would be written and write nothing")
	scope := config.General | config.Database | config.Owing
	return c.command(cmd, scope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		if cfg.DatabaseURL == "" {
			return usageError{errors.New("rebuild writes to Postgres: set --database-url or ENGINED_DATABASE_URL")}
		}
		job := rebuildJob{cli: c, session: *session, dryRun: *dryRun, asJSON: *asJSON}
		if err := job.choose(*what); err != nil {
			return usageError{err}
		}
		owes, owesOf := debtMilli(cfg)
		if err := schemaFits(ctx, cfg.DatabaseURL); err != nil {
			return err
		}
		with := aside(cfg, "rebuild")
		with.DefaultBudget, with.DebtMilli, with.DebtMilliOf = int64(cfg.DefaultTokenBudget), owes, owesOf
		s, end, err := openSealed(ctx, cfg, with)
		if err != nil {
			return err
		}
		defer end()
		return job.run(ctx, s)
	})
}

type rebuildJob struct {
	*cli
	session        string
	dryRun, asJSON bool
	logs           rebuild.What
	search, stream bool
}

func (j *rebuildJob) choose(what []string) error {
	if len(what) == 0 {
		j.logs = rebuild.All
		j.search, j.stream = j.session == "", j.session == ""
		return nil
	}
	for _, w := range what {
		switch w {
		case "facts":
			j.logs |= rebuild.Facts
		case "states":
			j.logs |= rebuild.States
		case "keys":
			j.logs |= rebuild.Keys
		case "search":
			j.search = true
		case "stream":
			j.stream = true
		default:
			return fmt.Errorf("--what %s: it is some of %s", w, strings.Join(rebuildParts, ", "))
		}
	}
	if j.session != "" && (j.search || j.stream) {
		return errors.New("search and stream are rebuilt for all sessions at once, without --session")
	}
	return nil
}

func (j *rebuildJob) run(ctx context.Context, s *store.Store) error {
	out := rowWriter{w: j.out, name: "changes"}
	var done rebuild.Progress
	if j.logs != 0 {
		var err error
		due := j.paced()
		o := rebuild.Options{What: j.logs, Session: j.session, DryRun: j.dryRun}
		if done, err = rebuild.Run(ctx, s, o, func(c rebuild.Change) error { return j.told(&out, c) }, func(p rebuild.Progress) {
			if due() {
				fmt.Fprintf(j.err, "%s, %s read, %s repaired\n", plural(p.Sessions, "session"), plural(p.Events, "event"), plural(p.Repaired, "session"))
			}
		}); err != nil {
			return err
		}
	}
	if j.asJSON {
		if err := out.end(""); err != nil {
			return err
		}
	}
	if err := j.rest(ctx, s); err != nil {
		return err
	}
	if j.logs != 0 && !j.asJSON {
		verb := "repaired"
		if j.dryRun {
			verb = "to repair"
		}
		fmt.Fprintf(j.out, "%s with %s read: %s %s\n",
			plural(done.Sessions, "session"), plural(done.Events, "event"), plural(done.Changes-done.Lost-done.Failed, "difference"), verb)
	}
	if done.Failed > 0 {
		return fmt.Errorf("%s could not be rebuilt; run it again for what is left", plural(done.Failed, "session"))
	}
	if done.Lost > 0 {
		return fmt.Errorf("%s that no log tells any more; a backup may", plural(done.Lost, "difference"))
	}
	return nil
}

func (j *rebuildJob) told(out *rowWriter, c rebuild.Change) error {
	if j.asJSON {
		raw, err := json.Marshal(c) //nolint:gosec // a session key is no secret
		if err != nil {
			return err
		}
		return out.row(raw)
	}
	mark := "✓"
	switch {
	case !c.Derivable || c.What == rebuild.Failed:
		mark = "✗"
	case j.dryRun:
		mark = "·"
	}
	fmt.Fprintf(j.out, "%s %s %s (%s): %s: %s\n", mark, oneLine(c.Tenant, 0), oneLine(c.SessionKey, 0), c.SID, c.What, oneLine(c.Detail, 0))
	return nil
}

// rest are the parts that are no session's own.
func (j *rebuildJob) rest(ctx context.Context, s *store.Store) error {
	if j.search {
		if err := j.writeIndex(ctx, s); err != nil {
			return err
		}
	}
	if j.stream {
		return j.publishAgain(ctx, s)
	}
	return nil
}

func (j *rebuildJob) sayf(format string, args ...any) { fmt.Fprintf(j.err, format+"\n", args...) }

func (j *rebuildJob) writeIndex(ctx context.Context, s *store.Store) error {
	tenants, err := s.SearchTenants(ctx)
	if err != nil {
		return err
	}
	if j.dryRun {
		j.sayf("search: the index of %s would be written anew", plural(len(tenants), "tenant"))
		return nil
	}
	events, due := map[string]int{}, j.paced()
	err = retrieval.NewIndexer(s, nil).Rebuild(ctx, "", func(tenant string, n int) {
		if events[tenant] = n; due() {
			j.sayf("search: %s of %s indexed", plural(n, "event"), oneLine(tenant, 0))
		}
	})
	if err != nil {
		return err
	}
	total := 0
	for _, n := range events {
		total += n
	}
	j.sayf("search: %s of %s indexed; what workers took over they finish", plural(total, "event"), plural(len(tenants), "tenant"))
	return nil
}

func (j *rebuildJob) publishAgain(ctx context.Context, s *store.Store) error {
	if j.dryRun {
		owed, _, err := s.OwedCompactions(ctx)
		if err != nil {
			return err
		}
		j.sayf("stream: compactions owed by %s would be published again", plural(owed, "session"))
		return nil
	}
	n, err := s.CallDue(ctx)
	if err != nil {
		return err
	}
	j.sayf("stream: %s made due; the next sweep of a worker publishes them", plural(n, "debt"))
	return nil
}
