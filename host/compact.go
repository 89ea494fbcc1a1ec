package host

import (
	"context"
	"errors"

	"github.com/engined/engined/contextengine"
)

// Why a compaction is asked for, in the host's words.
const (
	triggerOverflow  = "overflow"
	triggerTimeout   = "timeout_recovery"
	triggerPreflight = "preflight"
)

// beforeModel compacts once a turn when the prompt is near its budget: that is
// cheaper than to be refused. Whatever comes of it, the turn goes on.
func (t *turn) beforeModel(ctx context.Context) error {
	share, budget := t.h.cfg.Limits.ProactiveShare, t.req.TokenBudget
	size := t.estimate + t.size(t.messages)
	if t.proactive || share < 0 || budget == 0 || (t.over == nil && float64(size) < share*float64(budget)) {
		return nil
	}
	t.proactive = true
	res, err := t.compact(ctx, triggerPreflight, size, "")
	switch {
	case isAbort(err):
		return err
	case err != nil:
		t.warn("compaction before the model call failed", err)
		return nil
	case !res.Compacted:
		return nil
	}
	if err := t.maintain(ctx, contextengine.MaintainAfterCompaction); err != nil {
		return err
	}
	return t.assemble(ctx)
}

// recover makes the prompt smaller after a failed model call, or says why the
// turn ends.
func (t *turn) recover(ctx context.Context, failure error) error {
	var (
		overflow *OverflowError
		modelErr *ModelError
	)
	switch {
	case isAbort(failure):
		return failure
	case errors.As(failure, &overflow):
		return t.recoverOverflow(ctx, overflow)
	case isTimeout(failure) && t.timeouts < t.h.cfg.Limits.MaxTimeoutCompactions && t.full(timeoutShare):
		return t.recoverTimeout(ctx, failure)
	case errors.As(failure, &modelErr):
		return modelErr
	}
	return &ModelError{Err: failure}
}

func (t *turn) recoverOverflow(ctx context.Context, overflow *OverflowError) error {
	fail := func(reason string, err error) error {
		return &ContextOverflowError{Compactions: t.compactions, Reason: reason, Err: err}
	}
	if t.compactions >= t.h.cfg.Limits.MaxCompactions {
		reason := "still is after as many compactions as allowed"
		if errors.Is(overflow, ErrIdenticalPayload) {
			reason = "compacting does not change what the model would be sent"
		}
		return fail(reason, overflow)
	}
	t.compactions++
	observed := overflow.ObservedTokens
	if observed == 0 {
		observed = t.estimate + t.size(t.messages)
	}
	res, err := t.compact(ctx, triggerOverflow, observed, contextengine.DiagnosticOverflow)
	switch {
	case isAbort(err):
		return err
	case err != nil:
		return fail("the compaction failed", errors.Join(err, overflow))
	case !res.OK || !res.Compacted:
		return fail("the engine made nothing smaller: "+reasonOf(res), overflow)
	}
	return t.again(ctx)
}

func (t *turn) recoverTimeout(ctx context.Context, failure error) error {
	t.timeouts++
	res, err := t.compact(ctx, triggerTimeout, t.estimate+t.size(t.messages), contextengine.DiagnosticTimeout)
	switch {
	case isAbort(err):
		return err
	case err != nil:
		return &ModelError{Err: errors.Join(failure, err)}
	case !res.OK || !res.Compacted:
		return &ModelError{Err: failure}
	}
	return t.again(ctx)
}

// again starts the attempt over after a compaction; what the turn has done so
// far stays.
func (t *turn) again(ctx context.Context) error {
	if err := t.maintain(ctx, contextengine.MaintainAfterCompaction); err != nil {
		return err
	}
	return t.open(ctx)
}

// compact asks for a smaller window and follows the session if it moves.
func (t *turn) compact(ctx context.Context, trigger string, observed int, degraded contextengine.DiagnosticReason) (contextengine.CompactResult, error) {
	p := contextengine.CompactParams{
		Session: t.session, TokenBudget: t.room(), Force: true, CurrentTokenCount: &observed,
		CompactionTarget: contextengine.TargetBudget, RuntimeSettings: t.settings(degraded), RuntimeContext: t.runtime(),
	}
	if rc := p.RuntimeContext; rc != nil {
		rc.Trigger, rc.CurrentTokenCount = trigger, &observed
		if trigger == triggerOverflow {
			rc.Attempt, rc.MaxAttempts = t.compactions, t.h.cfg.Limits.MaxCompactions
		}
	}
	res, err := await(ctx, "compact", t.h.cfg.Limits.CompactTimeout, func(ctx context.Context) (contextengine.CompactResult, error) {
		return t.h.cfg.Engine.Compact(ctx, p)
	})
	if err != nil || !res.OK || !res.Compacted {
		return res, err
	}
	// What the gateway holds is not compacted: it is no hint any more.
	t.hints = nil
	if r := res.Result; r != nil {
		switch {
		case r.SessionTarget != nil && r.SessionTarget.SessionID != "":
			t.session.SessionID = r.SessionTarget.SessionID
		case r.SessionID != "":
			t.session.SessionID = r.SessionID
		}
	}
	return res, nil
}

func reasonOf(res contextengine.CompactResult) string {
	if res.Reason == "" {
		return "it gave no reason"
	}
	return res.Reason
}

// full reports that the prompt takes at least a share of the budget.
func (t *turn) full(share float64) bool {
	return t.req.TokenBudget > 0 && float64(t.estimate+t.size(t.messages)) > share*float64(t.req.TokenBudget)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
