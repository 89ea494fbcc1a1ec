package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// guardedCall makes one call of a slot and tells who answered where the answer
// tells it.
type guardedCall struct {
	op engine.Operation
	do func(context.Context, *engine.Guard) (by string, err error)
	// rethrown calls are not answered by the default engine when they fail.
	rethrown bool
}

func guardedCalls() []guardedCall {
	s := on("s")
	msgs := []json.RawMessage{said("a"), said("b")}
	return []guardedCall{
		{op: engine.OpBootstrap, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			r, err := g.Bootstrap(ctx, contextengine.BootstrapParams{Session: s, Messages: msgs})
			return r.Reason, err
		}},
		{op: engine.OpMaintain, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			r, err := g.Maintain(ctx, contextengine.MaintainParams{Session: s})
			return r.Reason, err
		}},
		{op: engine.OpIngest, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.Ingest(ctx, contextengine.IngestParams{Session: s, Message: msgs[0]})
			return "", err
		}},
		{op: engine.OpIngestBatch, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: msgs})
			return "", err
		}},
		{op: engine.OpAfterTurn, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.AfterTurn(ctx, contextengine.AfterTurnParams{Session: s, Messages: msgs})
			return "", err
		}},
		{op: engine.OpCommitTurn, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "k", Messages: msgs})
			return "", err
		}},
		{op: engine.OpAssemble, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			r, err := g.Assemble(ctx, contextengine.AssembleParams{Session: s})
			if err != nil {
				return "", err
			}
			var m struct{ Content string }
			err = json.Unmarshal(r.Messages[0], &m)
			return m.Content, err
		}},
		{op: engine.OpCompact, rethrown: true, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			r, err := g.Compact(ctx, contextengine.CompactParams{Session: s})
			return r.Reason, err
		}},
		{op: engine.OpPrepare, rethrown: true, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			r, err := g.PrepareSubagentSpawn(ctx, contextengine.PrepareSubagentSpawnParams{Session: s, ChildSessionKey: "c"})
			if err != nil {
				return "", err
			}
			return r.PreparationID, nil
		}},
		{op: engine.OpEnded, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.OnSubagentEnded(ctx, contextengine.SubagentEndedParams{Session: s, ChildSessionKey: "c", Reason: contextengine.SubagentCompleted})
			return "", err
		}},
		{op: engine.OpReset, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.Reset(ctx, s, nil, "")
			return "", err
		}},
		{op: engine.OpRewind, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.Rewind(ctx, s, 1)
			return "", err
		}},
		{op: engine.OpUndo, do: func(ctx context.Context, g *engine.Guard) (string, error) {
			_, err := g.UndoCompaction(ctx, s, nil)
			return "", err
		}},
	}
}

// trapError panics when anybody asks it anything.
type trapError struct{}

func (trapError) Error() string   { panic("Error") }
func (trapError) Is(error) bool   { panic("Is") }
func (trapError) As(any) bool     { panic("As") }
func (trapError) Unwrap() []error { panic("Unwrap") }

// TestB5FailuresMethodByMethod: every way to fail, in every call.
func TestB5FailuresMethodByMethod(t *testing.T) {
	t.Parallel()
	for how, tc := range map[string]struct {
		act    func(context.Context) error
		reason string
	}{
		"error":                {func(context.Context) error { return errors.New("boom") }, "boom"},
		"panic":                {func(context.Context) error { panic("boom") }, "panic: boom"},
		"error that is a trap": {func(context.Context) error { return trapError{} }, "panics when it is read"},
		"hangs": {func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Hour) // and heeds nothing
			return nil
		}, "no answer within"},
		"heeds its deadline": {func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("read: %w", ctx.Err())
		}, "no answer within"},
		"invents a cancellation": {func(context.Context) error { return context.Canceled }, "context canceled"},
	} {
		for _, c := range guardedCalls() {
			t.Run(fmt.Sprintf("%s in %s", how, c.op), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					broken := whole("acme")
					d := deskOf(t, broken)
					who(t, d.slot) // it serves until it breaks
					broken.does(func(ctx context.Context, _ engine.Operation) error { return tc.act(ctx) })
					by, err := c.do(t.Context(), d.slot)
					q := d.aside(t)
					if q.Operation != c.op || !strings.Contains(q.Reason, tc.reason) {
						t.Errorf("set aside for %s: %s", q.Operation, q.Reason)
					}
					var failed *contextengine.EngineFailedError
					switch {
					case c.rethrown && (!errors.As(err, &failed) || failed.EngineID != "acme" || failed.Operation != string(c.op)):
						t.Errorf("answered %q, %v", by, err)
					case !c.rethrown && err != nil:
						t.Errorf("the default engine does not answer: %v", err)
					case !c.rethrown && by != "" && by != engine.LegacyID:
						t.Errorf("%s answers", by)
					}
					// The next call, of this kind or another, is the default engine's.
					if _, err := c.do(t.Context(), d.slot); err != nil {
						t.Errorf("the call after it: %v", err)
					}
					if info := d.slot.Info(); info.ID != engine.LegacyID {
						t.Errorf("info is %s's", info.ID)
					}
					d.aside(t)
					time.Sleep(2 * time.Hour) // in the bubble: what was abandoned ends
					if diff := cmp.Diff([]engine.Operation{engine.OpAssemble, c.op, engine.OpDispose}, broken.calls()); diff != "" {
						t.Error(diff)
					}
					if n := d.Abandoned(); n != 0 {
						t.Errorf("%d calls are still counted as abandoned", n)
					}
				})
			})
		}
	}
}
