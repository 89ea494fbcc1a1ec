package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/prefix"
)

func (c *cli) cacheReport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cache-report KEY", Short: "Show what a provider's prompt cache could reuse, from the log", Args: oneArg,
		Long: words(
			"Build the window of every model call that the log tells of (the one before each reply), as it was then, and compare",
			"each with the one before: what both begin with a prompt cache can reuse, the rest is billed anew. Where replies hold",
			"the provider's own usage, what it really took from its cache is shown beside.",
		),
	}
	asJSON := jsonFlag(cmd)
	budget := cmd.Flags().Int("budget", 0, "token budget of all windows; by default what was the session's own at the time")
	last := cmd.Flags().Int("last", 0, "look at the newest calls only, at most this many; 0 is all")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		r := cacheReport{node: cl, key: args[0], c: c}
		if cmd.Flags().Changed("budget") {
			r.budget = budget
		}
		if err := r.calls(ctx, *last); err != nil {
			return err
		}
		if err := r.windows(ctx); err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c.out, r.result())
		}
		return r.print()
	})
}

// cacheReport is the report in the making.
type cacheReport struct {
	c      *cli
	node   *client.Client
	key    string
	budget *int

	asked  []modelCall
	seen   []reportedCall
	ledger prefix.Ledger
}

// modelCall is a reply of the log and what it says of its prompt.
type modelCall struct {
	seq            int64
	prompt, cached int
}

// reportedCall is a call with what the provider said of it; both 0 when it
// said nothing.
type reportedCall struct {
	prefix.Call
	ProviderPrompt int `json:"providerPromptTokens,omitempty"`
	ProviderCached int `json:"providerCachedTokens,omitempty"`
}

// calls finds the replies in the log.
func (r *cacheReport) calls(ctx context.Context, last int) error {
	err := eachEvent(ctx, r.node, r.key, func(e client.Event) error {
		if e.Type != "message.appended" || e.Role != "assistant" {
			return nil
		}
		call := modelCall{seq: e.Seq}
		call.prompt, call.cached = reportedUsage(e.Message)
		r.asked = append(r.asked, call)
		return nil
	})
	if last > 0 && len(r.asked) > last {
		r.asked = r.asked[len(r.asked)-last:]
	}
	if err == nil && len(r.asked) == 0 {
		err = fmt.Errorf("session %s holds no reply of a model", middle(r.key, 48))
	}
	return err
}

// eachEvent walks a session's log.
func eachEvent(ctx context.Context, node *client.Client, key string, see func(client.Event) error) error {
	for at := int64(0); ; {
		rows, next, err := node.Events(ctx, key, at, pageRows)
		if err != nil {
			return err
		}
		for _, e := range rows {
			if err := see(e); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		at = next
	}
}

// reportedUsage is what a reply says of its prompt, in any dialect.
func reportedUsage(raw json.RawMessage) (prompt, cached int) {
	var m struct {
		Usage struct {
			Input, CacheRead, CacheWrite int
			AnthropicInput               int `json:"input_tokens"`
			AnthropicRead                int `json:"cache_read_input_tokens"`
			AnthropicWrite               int `json:"cache_creation_input_tokens"`
			OpenAI                       int `json:"prompt_tokens"`
			OpenAIDetails                struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return 0, 0
	}
	u := m.Usage
	return u.Input + u.CacheRead + u.CacheWrite + u.AnthropicInput + u.AnthropicRead + u.AnthropicWrite + u.OpenAI,
		u.CacheRead + u.AnthropicRead + u.OpenAIDetails.Cached
}

// windows builds what each reply answered.
func (r *cacheReport) windows(ctx context.Context) error {
	n := r.c.counting("windows")
	defer n.end()
	for i, call := range r.asked {
		n.at(i, len(r.asked))
		before := call.seq - 1
		res, _, err := r.node.Assemble(ctx, r.key, contextengine.AssembleParams{AsOfSeq: &before, TokenBudget: r.budget})
		if err != nil {
			return err
		}
		r.seen = append(r.seen, reportedCall{r.ledger.Add(windowOf(res, before)), call.prompt, call.cached})
	}
	return nil
}

func windowOf(res contextengine.AssembleResult, seq int64) prefix.Window {
	w := prefix.Window{Seq: seq, Addition: res.SystemPromptAddition, Messages: res.Messages}
	if p := res.ContextProjection; p != nil {
		w.Epoch, w.Fingerprint = p.Epoch, p.Fingerprint
	}
	return w
}

type cacheResult struct {
	SessionKey  string         `json:"sessionKey"`
	Totals      prefix.Totals  `json:"totals"`
	FreshTokens int64          `json:"freshTokens"`
	ReusedShare float64        `json:"reusedShare"`
	Calls       []reportedCall `json:"calls"`
}

func (r *cacheReport) result() cacheResult {
	t := r.ledger.Totals()
	return cacheResult{SessionKey: r.key, Totals: t, FreshTokens: t.Fresh(), ReusedShare: t.Share(), Calls: r.seen}
}

// print shows the calls at which a prefix broke, and the sums.
func (r *cacheReport) print() error {
	t := newTable(r.c.out, right("CALL AFTER"), left("EPOCH"), right("MESSAGES"), right("TOKENS"), right("REUSED"), right("BILLED AGAIN"), left("PREFIX CHANGED BY"))
	for _, call := range r.seen {
		if call.Break != "" {
			t.row(seqText(call.Seq), call.Epoch, thousands(call.Messages), thousands(call.Tokens), thousands(call.ReusedTokens),
				thousands(call.Rebilled), breakText(call.Break))
		}
	}
	sum := r.ledger.Totals()
	if len(t.rows) > 0 {
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(r.c.out)
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(sum.Breaks)) {
		why = append(why, fmt.Sprintf("%s by %s", thousands(sum.Breaks[reason]), breakText(reason)))
	}
	if why == nil {
		why = []string{"never"}
	}
	fmt.Fprintf(r.c.out, "%s, %s tokens in all, the largest window %s\n", plural(sum.Calls, "model call"), thousands(sum.Tokens), thousands(sum.MaxTokens))
	fmt.Fprintf(r.c.out, "reusable: %.1f %% of the bytes, %s tokens; %s tokens were new or billed again\n", 100*sum.Share(), thousands(sum.ReusedTokens), thousands(sum.Fresh()))
	fmt.Fprintf(r.c.out, "the prefix changed: %s\n", strings.Join(why, ", "))
	var prompt, cached int
	for _, call := range r.seen {
		prompt, cached = prompt+call.ProviderPrompt, cached+call.ProviderCached
	}
	if prompt > 0 {
		fmt.Fprintf(r.c.out, "the provider's own word on the prompts it was sent then: %s tokens, %s of them from its cache (%.1f %%)\n",
			thousands(prompt), thousands(cached), 100*float64(cached)/float64(prompt))
	}
	return nil
}

func breakText(reason string) string {
	switch reason {
	case prefix.BreakEpoch:
		return "an epoch step"
	case prefix.BreakTrim:
		return "a trim step"
	default:
		return "another change"
	}
}
