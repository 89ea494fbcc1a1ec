package api

import (
	"fmt"

	"github.com/engined/engined/contextengine"
)

// ResetRequest empties the window or keeps what began at a seq.
type ResetRequest struct {
	contextengine.Session
	contextengine.Expectations
	// KeepFromSeq is the first seq that stays; absent, nothing does.
	KeepFromSeq *int64 `json:"keepFromSeq,omitempty"`
	// NextSessionID is the host's transcript identity after the reset; it becomes
	// the session's.
	NextSessionID string `json:"nextSessionId,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// RewindRequest moves the leaf back.
type RewindRequest struct {
	contextengine.Session
	contextengine.Expectations
	ToSeq *int64 `json:"toSeq" nullable:"false"`
}

// UndoRequest undoes a compaction, the newest one when Epoch is absent.
type UndoRequest struct {
	contextengine.Session
	contextengine.Expectations
	Epoch *int64 `json:"epoch,omitempty"`
}

func stepOperations() []*operation {
	reset := post("/reset", "reset", tagWindows, "Hide what came before", serveReset)
	reset.description = "Without `keepFromSeq` the window is empty afterwards. The log keeps everything."
	reset.request, reset.answer, reset.bodyOptional = of[ResetRequest](), of[contextengine.StepResult](), true

	rewind := post("/rewind", "rewind", tagWindows, "Go back to an earlier message", serveRewind)
	rewind.description = "The leaf becomes the newest message at or before `toSeq`. The head does not go back."
	rewind.request, rewind.answer = of[RewindRequest](), of[contextengine.StepResult]()

	undo := post("/undo-compaction", "undoCompaction", tagWindows, "Undo a compaction", serveUndo)
	undo.description = "Restores the window of the base epoch plus what came since."
	undo.request, undo.answer, undo.bodyOptional = of[UndoRequest](), of[contextengine.StepResult](), true
	undo.refusals = []kind{kindNothingToUndo}

	ops := []*operation{reset, rewind, undo}
	for _, op := range ops {
		op.refusals = append(op.refusals, kindUnknown, kindEpoch, kindErased, kindLease, kindStaleHead)
	}
	return ops
}

func serveReset(c *call) error {
	var p ResetRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.atLeast("keepFromSeq", p.KeepFromSeq, 1)
	k.key("nextSessionId", p.NextSessionID)
	k.key("reason", p.Reason)
	if k.err != nil {
		return k.err
	}
	if err := c.expect(p.Expectations); err != nil {
		return err
	}
	res, err := c.api.cfg.Steps.Reset(c.ctx, c.named(p.Session), p.KeepFromSeq, p.Reason)
	if err != nil {
		return err
	}
	if err := c.bindNext(p, &res); err != nil {
		return err
	}
	return c.answer(&res)
}

// bindNext makes the host's next transcript the session's: a page of it without
// entries.
func (c *call) bindNext(p ResetRequest, res *contextengine.StepResult) error {
	if p.NextSessionID == "" || p.NextSessionID == p.SessionID || c.api.cfg.Transcripts == nil {
		return nil
	}
	next := c.named(contextengine.Session{SessionID: p.NextSessionID, GatewayID: p.GatewayID})
	bound, err := c.api.cfg.Transcripts.Transcript(c.ctx, contextengine.TranscriptParams{Session: next})
	if err != nil {
		return fmt.Errorf("bind the next host session: %w", err)
	}
	res.Head, res.Epoch = bound.Head, bound.Epoch
	return nil
}

func serveRewind(c *call) error {
	var p RewindRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	if p.ToSeq == nil {
		k.fail("toSeq", "is required")
	}
	k.atLeast("toSeq", p.ToSeq, 1)
	if k.err != nil {
		return k.err
	}
	if err := c.expect(p.Expectations); err != nil {
		return err
	}
	res, err := c.api.cfg.Steps.Rewind(c.ctx, c.named(p.Session), *p.ToSeq)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func serveUndo(c *call) error {
	var p UndoRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.atLeast("epoch", p.Epoch, 1)
	if k.err != nil {
		return k.err
	}
	if err := c.expect(p.Expectations); err != nil {
		return err
	}
	res, err := c.api.cfg.Steps.UndoCompaction(c.ctx, c.named(p.Session), p.Epoch)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

// expect compares with the session as it is now. A step that another one
// overtakes right after is not refused by it: steps fence themselves by epoch.
func (c *call) expect(e contextengine.Expectations) error {
	if e.ExpectedHead == nil && e.ExpectedEpoch == nil {
		return nil
	}
	s, err := c.api.cfg.Log.Session(c.ctx, c.tenant, c.session)
	switch {
	case err != nil:
		return err
	case e.ExpectedHead != nil && *e.ExpectedHead != s.HostHead:
		return &contextengine.StaleHeadError{Expected: *e.ExpectedHead, Head: s.HostHead}
	case e.ExpectedEpoch != nil && *e.ExpectedEpoch != s.Epoch:
		return &contextengine.EpochConflictError{Expected: *e.ExpectedEpoch, Epoch: s.Epoch}
	}
	return nil
}
