// Package hosted asks a host's own model: the question waits until a gateway of
// the tenant takes it, asks the model that it already pays for, and answers.
package hosted

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/llm"
)

// Question is one call, as gateways get it.
type Question struct {
	// Key identifies the question by its content.
	Key     []byte
	Model   string
	Call    llm.Call
	Lease   time.Duration
	Timeout time.Duration
}

// State is how a question stands.
type State struct {
	// Done: Reply or Failed is what came of it.
	Done   bool
	Reply  llm.Reply
	Failed string
	// Unclaimed: no gateway took it in time.
	Unclaimed bool
}

// Board is where questions wait, for one session. It outlives processes.
type Board interface {
	// Ask puts a question, or finds the same one.
	Ask(ctx context.Context, q Question) (id string, err error)
	State(ctx context.Context, id string) (State, error)
	// Drop forgets a question.
	Drop(ctx context.Context, id string) error
}

// Client is an llm.Client.
type Client struct {
	Board Board
	// ModelName is the model that is wished for; empty for the gateway's choice.
	ModelName string
	// Lease is how long a gateway has to take a question, Timeout to answer it.
	Lease, Timeout time.Duration
	// Poll is how often the board is looked at, default 250 ms.
	Poll time.Duration
}

// Model implements llm.Client.
func (c *Client) Model() string { return c.ModelName }

// Parameters implements llm.Client.
func (c *Client) Parameters() string { return "host " + c.ModelName }

var (
	errUnclaimed = errors.New("no gateway took the question in time")
	errLate      = errors.New("no gateway answered in time")
)

// ReportedError is a failure as a gateway tells it. Its reason may hold anything,
// so Error, which is logged and kept, leaves it out.
type ReportedError struct{ Reason string }

func (e *ReportedError) Error() string { return "the gateway reports a failure" }

// Complete implements llm.Client. When the caller leaves, the question stays:
// who asks it again, perhaps another worker, finds its answer.
func (c *Client) Complete(ctx context.Context, call llm.Call) (llm.Reply, error) {
	q := Question{Key: key(c.ModelName, call), Model: c.ModelName, Call: call, Lease: c.Lease, Timeout: c.Timeout}
	id, err := c.Board.Ask(ctx, q)
	if err != nil {
		return llm.Reply{}, lost(err)
	}
	poll := c.Poll
	if poll == 0 {
		poll = 250 * time.Millisecond
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		s, err := c.Board.State(ctx, id)
		switch {
		case err != nil:
			return llm.Reply{}, lost(err)
		case s.Done:
			return c.done(ctx, id, s)
		case s.Unclaimed:
			return llm.Reply{}, c.giveUp(ctx, id, errUnclaimed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return llm.Reply{}, c.giveUp(ctx, id, errLate)
			}
			return llm.Reply{}, context.Cause(ctx)
		}
	}
}

// done takes the answer. Should this process end before the answer is kept
// elsewhere, it is asked for again.
func (c *Client) done(ctx context.Context, id string, s State) (llm.Reply, error) {
	if err := c.drop(ctx, id); err != nil {
		return llm.Reply{}, lost(err)
	}
	if s.Failed != "" {
		return llm.Reply{}, &summarize.Failure{Fault: summarize.FaultDown, Err: &ReportedError{Reason: s.Failed}}
	}
	return s.Reply, nil
}

// giveUp withdraws the question, so that no gateway pays for an answer that
// nobody waits for.
func (c *Client) giveUp(ctx context.Context, id string, why error) error {
	if err := c.drop(ctx, id); err != nil {
		return lost(err)
	}
	return &summarize.Failure{Fault: summarize.FaultSlow, Err: why}
}

// lost is a board that cannot be read: no fault of any gateway.
func lost(err error) error { return &summarize.Failure{Fault: summarize.FaultAbandoned, Err: err} }

func (c *Client) drop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return c.Board.Drop(ctx, id)
}

func key(model string, call llm.Call) []byte {
	h := sha256.New()
	for _, s := range []string{model, call.System, call.User} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(call.MaxTokens))
	h.Write(n[:])
	return h.Sum(nil)
}
