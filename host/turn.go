package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	"github.com/engined/engined/contextengine"
)

// turn is one turn on its way.
type turn struct {
	h   *Host
	req TurnRequest
	// session may move to a successor when the engine compacts.
	session contextengine.Session
	// window is what the engine last assembled, else the gateway's history.
	window   []json.RawMessage
	estimate int
	addition string
	// hints are what assemble is given as the host's own messages.
	hints []json.RawMessage
	over  *contextengine.OverBudget
	// messages are the turn's own: the user's and all that followed.
	messages []json.RawMessage
	last     Response

	// rejected are the hashes of payloads that the model refused as too large.
	rejected  map[[sha256.Size]byte]bool
	proactive bool
	modelCalls,
	compactions,
	timeouts int
}

// Turn runs one turn. It returns an error if the turn was not accepted: an
// *AbortError, *ModelError, *ToolError or *ContextOverflowError. Nothing was
// committed then, with two exceptions: an abort within the commit leaves open
// whether the engine has the turn, and an abort within the maintenance after it
// comes with the accepted turn.
func (h *Host) Turn(ctx context.Context, req TurnRequest) (TurnResult, error) {
	switch {
	case req.Session.SessionKey == "":
		return TurnResult{}, &contextengine.InvalidError{Field: "sessionKey", Reason: "is required"}
	case req.ID == "":
		return TurnResult{}, &contextengine.InvalidError{Field: "id", Reason: "is required"}
	case len(req.Message) == 0 || !json.Valid(req.Message):
		return TurnResult{}, &contextengine.InvalidError{Field: "message", Reason: "must be JSON"}
	case req.TokenBudget < 0:
		return TurnResult{}, &contextengine.InvalidError{Field: "tokenBudget", Reason: "must not be negative"}
	}
	leave, err := h.lanes.enter(ctx, laneOf(req.Session))
	if err != nil {
		return TurnResult{}, err
	}
	defer leave()
	t := &turn{
		h: h, req: req, session: req.Session, hints: req.History, messages: []json.RawMessage{req.Message},
		rejected: map[[sha256.Size]byte]bool{},
	}
	t.show(req.History)
	if err := t.run(ctx); err != nil {
		return TurnResult{}, err
	}
	res := TurnResult{
		Turn: Turn{
			Session: t.session, ID: req.ID, History: req.History, Messages: t.messages, IsHeartbeat: req.IsHeartbeat,
			TokenBudget: req.TokenBudget, ContextWindow: req.ContextWindow, Usage: t.last.Usage, Provider: t.last.Provider, Model: t.last.Model,
		},
		Answer: t.messages[len(t.messages)-1], ModelCalls: t.modelCalls, Compactions: t.compactions,
	}
	if res.Model == "" {
		res.Model = req.Model
	}
	if res.CommitErr = h.Commit(ctx, res.Turn); isAbort(res.CommitErr) {
		return TurnResult{}, res.CommitErr
	}
	if res.CommitErr != nil {
		h.cfg.Logger.Warn("turn remains uncommitted", "session", t.session.SessionKey, "turn", req.ID, "error", res.CommitErr)
		return res, nil
	}
	return res, t.maintainTurn(ctx)
}

func laneOf(s contextengine.Session) lane { return lane{s.Tenant, s.SessionKey} }

// run makes the model calls of the turn until it calls no tool.
func (t *turn) run(ctx context.Context) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	for {
		if err := t.beforeModel(ctx); err != nil {
			return err
		}
		res, err := t.ask(ctx)
		if err != nil {
			if err := t.recover(ctx, err); err != nil {
				return err
			}
			continue
		}
		t.last = res
		t.messages = append(t.messages, res.Message)
		if len(res.ToolCalls) == 0 {
			return nil
		}
		if err := t.callTools(ctx, res.ToolCalls); err != nil {
			return err
		}
		if t.h.info.OwnsCompaction {
			if err := t.assemble(ctx); err != nil {
				return err
			}
		}
	}
}

// open readies the session and asks for its window: at the turn's start and
// after every compaction that a refusal forced.
func (t *turn) open(ctx context.Context) error {
	if !t.req.FirstTurn {
		if err := t.bootstrap(ctx); err != nil {
			return err
		}
	}
	return t.assemble(ctx)
}

// ask makes one model call, unless the same bytes were refused before.
func (t *turn) ask(ctx context.Context) (Response, error) {
	r := Request{
		Model: t.req.Model, System: t.req.System, SystemAddition: t.addition,
		Messages: slices.Concat(t.window, t.messages), Tools: t.h.cfg.Tools.Names(),
	}
	sum := fingerprint(r)
	if t.rejected[sum] {
		return Response{}, &OverflowError{Err: ErrIdenticalPayload}
	}
	if t.modelCalls >= t.h.cfg.Limits.MaxModelCalls {
		return Response{}, &ModelError{Err: errors.New("the turn takes more model calls than allowed")}
	}
	t.modelCalls++
	res, err := await(ctx, "model", t.h.cfg.Limits.ModelTimeout, func(ctx context.Context) (Response, error) {
		return t.h.cfg.Model.Complete(ctx, r)
	})
	if err == nil && !json.Valid(res.Message) {
		err = errors.New("the answer is no message")
	}
	if _, ok := errors.AsType[*OverflowError](err); ok {
		t.rejected[sum] = true
	}
	return res, err
}

// fingerprint tells payloads apart. The tools are the same all along.
func fingerprint(r Request) (sum [sha256.Size]byte) {
	d := sha256.New()
	add := func(b []byte) {
		d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		d.Write(b)
	}
	add([]byte(r.System))
	add([]byte(r.SystemAddition))
	for _, m := range r.Messages {
		add(m)
	}
	d.Sum(sum[:0])
	return sum
}

func (t *turn) callTools(ctx context.Context, calls []ToolCall) error {
	for _, c := range calls {
		result, err := await(ctx, "tool "+c.Name, t.h.cfg.Limits.ToolTimeout, func(ctx context.Context) (json.RawMessage, error) {
			return t.h.cfg.Tools.Call(ctx, c)
		})
		switch {
		case isAbort(err):
			return err
		case err != nil:
			return &ToolError{Call: c, Err: err}
		case !json.Valid(result):
			return &ToolError{Call: c, Err: errors.New("the result is no message")}
		}
		t.messages = append(t.messages, result)
	}
	return nil
}
