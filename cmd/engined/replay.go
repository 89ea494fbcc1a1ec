package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/replay"
	"github.com/engined/engined/internal/retrieval"
)

func (c *cli) replay() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay KEY", Short: "Run a session again under other policies and compare", Args: oneArg,
		Long: words(
			"Read a session from a node, run it again here on a private Postgres for each policy, and show side by side what its",
			"windows cost and keep: the node and the session are not touched. A policy is a name and what differs from the defaults:",
			"",
			"  engined replay KEY --policy now --policy 'late:threshold=0.9,target=0.6' --policy 'never:compaction=off'",
			"",
			"Its keys: budget, threshold, target, tail, chunk, fan-in, compaction=on|off,",
			"engine=lossless|rolling|recall|legacy. What model-windows says of --model comes before the defaults. A fork is run",
			"with what it inherited, as its ancestors' logs tell it.",
		),
	}
	asJSON := jsonFlag(cmd)
	policies := cmd.Flags().StringArray("policy", []string{"default", "never:compaction=off"}, "a policy, NAME[:KEY=VALUE,…]; may be repeated")
	budget := cmd.Flags().Int("budget", 0, "token budget; by default the session's own, else the configured default")
	model := cmd.Flags().String("model", "", "count tokens for this model, with its budget and threshold of model-windows")
	scope := config.General | config.Client | config.Replaying
	return c.command(cmd, scope, devDefaults, func(ctx context.Context, cfg config.Config, args []string) error {
		if err := checkPolicies(cfg); err != nil {
			return usageError{err}
		}
		models := modelsOf(cfg)
		all := make([]*replayPolicy, 0, len(*policies))
		for _, text := range *policies {
			p, err := parsePolicy(text, cfg, models, *model, *budget)
			if err != nil {
				return usageError{fmt.Errorf("--policy %s: %w", text, err)}
			}
			all = append(all, p)
		}
		steps, err := c.recorded(ctx, cfg, args[0], cmp.Or(models.Budget(*model), cfg.DefaultTokenBudget), all)
		if err != nil {
			return err
		}
		if err := c.runReplays(ctx, cfg, steps, *model, all); err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c.out, struct {
				SessionKey string          `json:"sessionKey"`
				Policies   []*replayPolicy `json:"policies"`
			}{args[0], all})
		}
		return c.printReplays(all)
	})
}

// replayPolicy is one of the sides and what became of it.
type replayPolicy struct {
	Name   string         `json:"name"`
	Engine string         `json:"engine"`
	Budget int            `json:"budget"`
	Never  bool           `json:"neverCompacts,omitempty"`
	Policy compact.Policy `json:"policy"`
	Result replay.Result  `json:"result"`
}

func parsePolicy(text string, cfg config.Config, models engine.Models, model string, budget int) (*replayPolicy, error) {
	name, settings, _ := strings.Cut(text, ":")
	p := &replayPolicy{Name: name, Engine: "lossless", Budget: budget, Policy: compact.Policy{
		Threshold: cfg.CompactionThreshold, TargetShare: cfg.CompactionTarget, TailShare: cfg.CompactionTail,
	}}
	if !strings.Contains(settings, "threshold=") {
		p.Policy = models.Policy(policy(cfg), model)
	}
	for setting := range strings.SplitSeq(settings, ",") {
		if setting == "" {
			continue
		}
		key, value, _ := strings.Cut(setting, "=")
		if err := p.set(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return nil, err
		}
	}
	p.Policy.SoftThreshold = softShare * p.Policy.Threshold
	p.Policy = p.Policy.Fitted()
	return p, p.Policy.Validate()
}

func (p *replayPolicy) set(key, value string) error {
	number := func(into *int) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %q is not a whole number above 0", key, value)
		}
		*into = n
		return nil
	}
	part := func(into *float64) error {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f > 0 && f <= 1) {
			return fmt.Errorf("%s: %q is not a part between 0 and 1", key, value)
		}
		*into = f
		return nil
	}
	switch key {
	case "budget":
		return number(&p.Budget)
	case "chunk":
		return number(&p.Policy.ChunkTokens)
	case "fan-in":
		return number(&p.Policy.FanIn)
	case "threshold":
		return part(&p.Policy.Threshold)
	case "target":
		return part(&p.Policy.TargetShare)
	case "tail":
		return part(&p.Policy.TailShare)
	case "compaction":
		p.Never = value == "off"
		if value != "on" && value != "off" {
			return fmt.Errorf("compaction: %q is neither on nor off", value)
		}
	case "engine":
		p.Engine = value
		if _, ok := replayEngines[value]; !ok {
			return fmt.Errorf("engine: %q is not one of lossless, rolling, recall, legacy", value)
		}
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

// recorded reads the session, and its budget for the policies that name none.
func (c *cli) recorded(ctx context.Context, cfg config.Config, key string, budget int, all []*replayPolicy) ([]replay.Step, error) {
	cl, err := node(cfg)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	s, err := cl.Session(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		p.Budget = cmp.Or(p.Budget, int(s.TokenBudget), budget)
	}
	r := recording{node: cl, users: make(map[int64]bool), n: c.counting("events read")}
	err = r.read(ctx, key, s.Head)
	r.n.end()
	if err == nil && len(r.steps) == 0 {
		err = errors.New("the session holds nothing to replay")
	}
	return replay.WithTurns(r.steps, func(s replay.Step) bool { return r.users[s.Seq] }), err
}

// recording is what hosts did in a session and, before the point of a fork, in
// its ancestors. Steps are named by their places in the session's line.
type recording struct {
	node  *client.Client
	steps []replay.Step
	users map[int64]bool
	n     *counting
	// leaf is the newest message of the path so far.
	leaf int64
}

// read adds a session up to a seq.
func (r *recording) read(ctx context.Context, key string, until int64) error {
	inherited, began := int64(0), int64(0)
	err := eachEvent(ctx, r.node, key, func(e client.Event) error {
		if e.Seq > until {
			return errEnough
		}
		switch e.Type {
		case "forked":
			var from events.ForkedBody
			err := dataOf(e, &from)
			if inherited = from.Inherited; err != nil || from.ParentSessionKey == "" { // erased
				return err
			}
			err = r.read(ctx, from.ParentSessionKey, from.AtSeq)
			began = r.leaf
			return err
		case "ancestor.erased":
			var gone events.AncestorErasedBody
			err := dataOf(e, &gone)
			r.steps = slices.DeleteFunc(r.steps, func(s replay.Step) bool { return s.Seq <= gone.Through })
			return err
		}
		step, ok, err := stepOf(e, inherited)
		if ok {
			if step.Kind == replay.Rewind && inherited > 0 && step.Target <= inherited+1 {
				step.Target = began // back to the point of the fork
			}
			r.follow(step)
			r.users[step.Seq] = e.Role == "user"
			r.steps = append(r.steps, step)
		}
		r.n.at(int(e.Seq), int(until))
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (r *recording) follow(s replay.Step) {
	switch {
	case s.Kind == replay.Message:
		r.leaf = s.Seq
	case s.Kind == replay.Rewind:
		r.leaf = s.Target
	case s.Kind == replay.Reset && s.Target == 0:
		r.leaf = 0
	}
}

var errEnough = errors.New("what follows came after the fork")

// stepOf is what a host did; what the engine itself wrote is left to the policy.
func stepOf(e client.Event, inherited int64) (replay.Step, bool, error) {
	step := replay.Step{Seq: inherited + e.Seq}
	switch e.Type {
	case "message.appended":
		step.Message, step.Heartbeat, step.Reply = e.Message, e.IsHeartbeat, e.Role == "assistant"
	case "turn.completed":
		step.Kind = replay.TurnEnd
	case "session.reset":
		step.Kind = replay.Reset
		var body events.SessionResetBody
		if err := dataOf(e, &body); err != nil {
			return step, false, err
		}
		switch {
		case len(body.Path) > 0:
			step.Target = body.Path[0].From
		case body.KeepFrom > 0:
			step.Target = inherited + body.KeepFrom
		}
	case "leaf.moved":
		step.Kind = replay.Rewind
		var body events.LeafMovedBody
		if err := dataOf(e, &body); err != nil {
			return step, false, err
		}
		step.Target = inherited + body.To
	default:
		return step, false, nil
	}
	return step, true, nil
}

func dataOf(e client.Event, into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return nil
}

// runReplays starts a private Postgres and runs policy after policy on it.
func (c *cli) runReplays(ctx context.Context, cfg config.Config, steps []replay.Step, model string, all []*replayPolicy) (err error) {
	dir, remove, err := scratch(os.TempDir(), "engined-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	cfg.Data, cfg.DatabaseURL = filepath.Join(dir, "data"), ""
	// Turns ask for a compaction from the lowest threshold on; a policy with a higher
	// one then finds nothing to do.
	cfg.CompactionThreshold = slices.MinFunc(all, func(a, b *replayPolicy) int {
		return cmp.Compare(a.Policy.Threshold, b.Policy.Threshold)
	}).Policy.Threshold
	a := NewApp(cfg, Roles{Private: true, Fast: true}, c.logger(cfg))
	if err := a.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	for i, p := range all {
		n := c.counting(p.Name)
		if p.Result, err = p.run(ctx, a, replay.Options{
			Session: contextengine.Session{Tenant: fmt.Sprintf("replay-%d", i), SessionKey: "replay"},
			Budget:  p.Budget, Model: model,
			Progress: func(done int) { n.at(done, len(steps)) },
		}, steps); err != nil {
			return fmt.Errorf("policy %s: %w", p.Name, err)
		}
		n.end()
	}
	return nil
}

func (p *replayPolicy) run(ctx context.Context, a *App, o replay.Options, steps []replay.Step) (replay.Result, error) {
	cfg := engine.Config{
		Log: a.store, Policy: p.Policy, DefaultBudget: p.Budget, Logger: a.log,
		Limits: message.Limits{Bytes: int(a.cfg.MaxMessageBytes), Depth: a.cfg.MaxNesting},
	}
	made := replayEngines[p.Engine](a, cfg)
	defer func() { _ = made.Dispose(context.WithoutCancel(ctx)) }() // answers of a database that goes away
	e := replay.Engine(made)
	if p.Never {
		e = never{e}
	}
	return replay.Run(ctx, e, steps, o)
}

// replayed is a built-in engine of a run.
type replayed interface {
	replay.Engine
	contextengine.Disposer
}

var replayEngines = map[string]func(*App, engine.Config) replayed{
	"lossless": func(_ *App, c engine.Config) replayed { return engine.NewLossless(c) },
	"legacy":   func(_ *App, c engine.Config) replayed { return engine.NewLegacy(c, nil) },
	"rolling": func(a *App, c engine.Config) replayed {
		c.RollingTurns = a.cfg.RollingTurns
		return engine.NewRolling(c)
	},
	"recall": func(a *App, c engine.Config) replayed {
		c.Passages = inStep{a.indexer(), retrieval.NewSearcher(a.store, nil)}
		return engine.NewRecall(c)
	},
}

// inStep indexes before each search: a replay is faster than any index that
// follows the log in its own time.
type inStep struct {
	indexer *retrieval.Indexer
	engine.Passages
}

func (s inStep) Search(ctx context.Context, r retrieval.Request) (retrieval.Answer, error) {
	if _, err := s.indexer.Index(ctx, r.Tenant, time.Second); err != nil {
		return retrieval.Answer{}, err
	}
	return s.Passages.Search(ctx, r)
}

// never is an engine that trims and does not compact.
type never struct{ replay.Engine }

func (n never) Compact(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true, Reason: "nothing to compact"}, nil
}

func (c *cli) printReplays(all []*replayPolicy) error {
	heads := []column{left("")}
	for _, p := range all {
		heads = append(heads, right(p.Name))
	}
	t := newTable(c.out, heads...)
	for _, line := range []struct {
		title string
		value func(p *replayPolicy) string
	}{
		{"budget", func(p *replayPolicy) string { return thousands(p.Budget) }},
		{"model calls", func(p *replayPolicy) string { return thousands(p.Result.Calls) }},
		{"tokens of all windows", func(p *replayPolicy) string { return thousands(p.Result.Tokens) }},
		{"largest window", func(p *replayPolicy) string { return thousands(p.Result.MaxTokens) }},
		{"reusable bytes", func(p *replayPolicy) string { return fmt.Sprintf("%.1f %%", 100*p.Result.ReusedShare) }},
		{"tokens new or billed again", func(p *replayPolicy) string { return thousands(p.Result.FreshTokens) }},
		{"prefix changes", func(p *replayPolicy) string {
			n := 0
			for _, b := range p.Result.Breaks {
				n += b
			}
			return thousands(n)
		}},
		{"compactions", func(p *replayPolicy) string { return thousands(p.Result.Compactions) }},
		{"summaries written", func(p *replayPolicy) string { return thousands(p.Result.SummaryCalls) }},
		{"calls over the budget", func(p *replayPolicy) string { return thousands(p.Result.OverBudget) }},
		{"messages left out, mean", func(p *replayPolicy) string {
			return fmt.Sprintf("%.1f", float64(p.Result.LeftOut)/float64(max(p.Result.Calls, 1)))
		}},
		{"messages left out, most", func(p *replayPolicy) string { return thousands(p.Result.MaxLeftOut) }},
		{"at the end: tokens", func(p *replayPolicy) string { return thousands(p.Result.LastTokens) }},
		{"at the end: messages shown", func(p *replayPolicy) string { return thousands(p.Result.Shown) }},
		{"at the end: summaries", func(p *replayPolicy) string { return thousands(p.Result.Summaries) }},
		{"at the end: left out", func(p *replayPolicy) string { return thousands(p.Result.LastLeft) }},
	} {
		cells := []string{line.title}
		for _, p := range all {
			cells = append(cells, line.value(p))
		}
		t.row(cells...)
	}
	return t.flush()
}
