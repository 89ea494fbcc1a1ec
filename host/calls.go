package host

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/engined/engined/contextengine"
)

// call makes a call of the engine that the turn can do without: what fails is
// logged and ok is false. An abort ends the turn.
func call[R any](ctx context.Context, t *turn, step string, do func(context.Context) (R, error)) (res R, ok bool, err error) {
	res, err = await(ctx, step, t.h.cfg.Limits.EngineTimeout, do)
	switch {
	case err == nil:
		return res, true, nil
	case isAbort(err):
		return res, false, err
	case !errors.Is(err, errors.ErrUnsupported):
		t.warn("context engine "+step+" failed", err)
	}
	return res, false, nil
}

func (t *turn) warn(msg string, err error) {
	t.h.cfg.Logger.Warn(msg, "engine", t.h.info.ID, "session", t.session.SessionKey, "turn", t.req.ID, "error", err)
}

// bootstrap hands the history over. If that fails, its maintenance is left out
// and the turn goes on.
func (t *turn) bootstrap(ctx context.Context) error {
	if b, has := t.h.cfg.Engine.(contextengine.Bootstrapper); has {
		_, ok, err := call(ctx, t, "bootstrap", func(ctx context.Context) (contextengine.BootstrapResult, error) {
			return b.Bootstrap(ctx, contextengine.BootstrapParams{
				Session: t.session, Messages: t.req.History, RuntimeSettings: t.settings(""), RuntimeContext: t.runtime(),
			})
		})
		if err != nil || !ok {
			return err
		}
	}
	return t.maintain(ctx, contextengine.MaintainAfterBootstrap)
}

func (t *turn) maintain(ctx context.Context, reason string) error {
	m, has := t.h.cfg.Engine.(contextengine.Maintainer)
	if !has {
		return nil
	}
	_, _, err := call(ctx, t, "maintain", func(ctx context.Context) (contextengine.MaintainResult, error) {
		return m.Maintain(ctx, contextengine.MaintainParams{
			Session: t.session, Reason: reason, RuntimeSettings: t.settings(""), RuntimeContext: t.runtime(),
		})
	})
	return err
}

// maintainTurn is the maintenance after an accepted turn: the turn waits for it
// or, if the engine says so, the session's next turn does.
func (t *turn) maintainTurn(ctx context.Context) error {
	if t.h.info.TurnMaintenanceMode != contextengine.BackgroundMaintenance {
		return t.maintain(ctx, contextengine.MaintainAfterTurn)
	}
	m, has := t.h.cfg.Engine.(contextengine.Maintainer)
	if !has {
		return nil
	}
	id := laneOf(t.session)
	t.h.background.run(id, func(ctx context.Context) {
		leave, err := t.h.lanes.enter(ctx, id)
		if err != nil {
			return
		}
		defer leave()
		rc := t.runtime()
		if rc != nil {
			rc.AllowDeferredCompaction = true
		}
		// No deadline: nobody waits but the session's next turn.
		_, err = await(ctx, "maintain", 0, func(ctx context.Context) (contextengine.MaintainResult, error) {
			return m.Maintain(ctx, contextengine.MaintainParams{
				Session: t.session, Reason: contextengine.MaintainAfterTurn, RuntimeSettings: t.settings(""), RuntimeContext: rc,
			})
		})
		if err != nil && !isAbort(err) && !errors.Is(err, errors.ErrUnsupported) {
			t.warn("context engine maintain failed", err)
		}
	})
	return nil
}

// assemble asks for the window. If that fails, the one there is stays.
func (t *turn) assemble(ctx context.Context) error {
	p := contextengine.AssembleParams{
		Session: t.session, Messages: t.hints, Model: t.req.Model, AvailableTools: t.h.cfg.Tools.Names(),
		CitationsMode: t.req.CitationsMode, TokenBudget: t.room(), RuntimeSettings: t.settings(""), RuntimeContext: t.runtime(),
	}
	if t.h.info.Accepts(contextengine.ParamPrompt) {
		p.Prompt = t.req.Prompt
	}
	res, ok, err := call(ctx, t, "assemble", func(ctx context.Context) (contextengine.AssembleResult, error) {
		res, err := t.h.cfg.Engine.Assemble(ctx, p)
		if err == nil && res.Messages == nil {
			err = errors.New("the window has no messages, not even none")
		}
		return res, err
	})
	if err != nil || !ok {
		return err
	}
	t.window, t.estimate, t.addition, t.over = res.Messages, res.EstimatedTokens, res.SystemPromptAddition, res.OverBudget
	if len(t.hints) > 0 {
		t.hints = res.Messages
	}
	return nil
}

// show uses the gateway's own messages as the window.
func (t *turn) show(messages []json.RawMessage) {
	t.window, t.estimate = messages, t.size(messages)
}

func (t *turn) size(messages []json.RawMessage) (tokens int) {
	for _, m := range messages {
		tokens += t.h.cfg.Estimate(m)
	}
	return tokens
}

// room is the budget of the window: what the turn's own messages leave.
func (t *turn) room() *int {
	if t.req.TokenBudget == 0 {
		return nil
	}
	return new(max(1, t.req.TokenBudget-t.size(t.messages)))
}
