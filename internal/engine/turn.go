package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/adopt"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

func (w *writer) commitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	var none contextengine.CommitTurnResult
	if p.AdvancementKey == "" || len(p.AdvancementKey) > maxKeyBytes {
		return none, &contextengine.InvalidError{Field: "advancementKey", Reason: fmt.Sprintf("1 to %d bytes", maxKeyBytes), Limit: maxKeyBytes}
	}
	if len(p.Messages) == 0 {
		return none, &contextengine.InvalidError{Field: "messages", Reason: "at least one message"}
	}
	report, err := w.report(p.TokenBudget, p.Usage, p.RuntimeContext)
	if err != nil {
		return none, err
	}
	report.IsHeartbeat = p.IsHeartbeat
	evs, err := w.events(p.Messages, p.IsHeartbeat, 0)
	if err != nil {
		return none, err
	}
	chain := newChain(nil)
	for i := range evs {
		chain = chain.next(evs[i].Hash)
	}
	t := &adopt.Turn{Params: p, Events: evs, Chain: chain, End: completed(report)}
	it := store.HostItem(p.Session, p.Expectations)
	if err := w.owing(ctx, it, report, promptOf(report.PromptTokens, p.Messages)); err != nil {
		return none, err
	}
	if err := t.Write(it); err != nil {
		return none, err
	}
	a, err := w.cfg.Log.Append(ctx, it)
	if conflict := (*contextengine.IdempotencyConflictError)(nil); errors.As(err, &conflict) {
		a, err = w.meet(ctx, t, it, conflict)
	}
	if err != nil {
		return none, err
	}
	res := contextengine.CommitTurnResult{Status: contextengine.TurnCommitted, Head: a.Head, Epoch: a.Epoch}
	if a.Duplicate {
		res.Status = contextengine.TurnDuplicate
	}
	res.Compaction = w.announce(p.Session, a)
	return res, nil
}

// meet stores a turn of which something is known already.
func (w *writer) meet(ctx context.Context, t *adopt.Turn, it *store.Item, conflict error) (out store.Appended, err error) {
	lane := store.Lane{Gateway: t.Params.GatewayID, HostSession: t.Params.SessionID}
	err = w.cfg.Log.InLane(ctx, t.Params.Tenant, t.Params.SessionKey, lane, func(tx *store.LaneTx) error {
		out, err = t.Meet(ctx, tx, it, conflict)
		return err
	})
	return out, err
}

func (w *writer) afterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	var none contextengine.AfterTurnResult
	if p.PrePromptMessageCount < 0 || p.PrePromptMessageCount > len(p.Messages) {
		return none, &contextengine.InvalidError{
			Field:  "prePromptMessageCount",
			Reason: fmt.Sprintf("between 0 and the number of messages (%d)", len(p.Messages)),
		}
	}
	report, err := w.report(p.TokenBudget, p.Usage, p.RuntimeContext)
	if err != nil {
		return none, err
	}
	report.IsHeartbeat = p.IsHeartbeat
	evs, err := w.events(p.Messages[p.PrePromptMessageCount:], p.IsHeartbeat, p.PrePromptMessageCount)
	if err != nil {
		return none, err
	}
	it := store.HostItem(p.Session, p.Expectations)
	if err := w.owing(ctx, it, report, promptOf(report.PromptTokens, p.Messages[p.PrePromptMessageCount:])); err != nil {
		return none, err
	}
	end := completed(report)
	skip := 0
	if len(evs) > 0 {
		var last link
		if skip, last, err = w.delivered(ctx, p, evs); err != nil {
			return none, err
		}
		it.Gate = len(evs) - skip + 1
		end.Hash, end.Keys = last, []store.Key{{Kind: store.DeltaKey, Value: last[:]}}
	} else {
		silent, err := w.silentEnd(ctx, p, end)
		if err != nil {
			return none, err
		}
		it.Gate = 1
		end.Hash, end.Keys = silent, []store.Key{{Kind: store.DeltaKey, Value: silent[:]}}
	}
	it.Events = append(slices.Clip(evs[skip:]), end)
	a, err := w.cfg.Log.Append(ctx, it)
	if err != nil {
		return none, err
	}
	res := contextengine.AfterTurnResult{Head: a.Head, Epoch: a.Epoch}
	if !a.Duplicate {
		res.IngestedCount = len(evs) - skip
	}
	res.Compaction = w.announce(p.Session, a)
	return res, nil
}

// owing has an item put its session into debt where it grows over the threshold
// of its model: the one that this turn names, else the last that was named.
func (w *writer) owing(ctx context.Context, it *store.Item, r events.TurnCompletedBody, prompt int64) error {
	it.Budget, it.Owes, it.Model = int64(r.TokenBudget), w.owes, r.Model
	if !w.owes {
		return nil
	}
	if r.Model == "" && w.cfg.Models.haveThresholds() {
		v, err := w.cfg.Log.View(ctx, it.Tenant, it.SessionKey, uuid.Nil, 0, 0)
		if err == nil {
			it.Model, err = w.cfg.lastModel(ctx, v)
		}
		if err != nil {
			return unlessUnknown(err)
		}
	}
	var err error
	it.ScaleMilli, err = w.scaled(ctx, it, prompt)
	return err
}

func unlessUnknown(err error) error {
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return nil
	}
	return err
}

// delivered tells how many of the new messages an earlier call brought under
// the same host session and count: hosts deliver a growing delta again, and
// the same delta after a lost answer. Only a whole earlier delta counts; equal
// beginnings of different turns are different messages.
func (w *writer) delivered(ctx context.Context, p contextengine.AfterTurnParams, evs []store.NewEvent) (skip int, last link, err error) {
	chain := newChain(seedOf(p))
	links := make([][]byte, len(evs))
	for i := range evs {
		chain = chain.next(evs[i].Hash)
		links[i] = append([]byte(nil), chain[:]...)
	}
	known, err := w.cfg.Log.KnownKeys(ctx, p.Tenant, p.SessionKey, store.DeltaKey, links)
	if err != nil {
		return 0, chain, err
	}
	// The whole delta is the append's own gate to recognise.
	for i := len(evs) - 2; i >= 0; i-- {
		if _, ok := known[string(links[i])]; ok {
			return i + 1, chain, nil
		}
	}
	return 0, chain, nil
}

func seedOf(p contextengine.AfterTurnParams) []byte {
	seed := fmt.Appendf(nil, "%d:%s%d:%s", len(p.GatewayID), p.GatewayID, len(p.SessionID), p.SessionID)
	return binary.BigEndian.AppendUint64(seed, uint64(p.PrePromptMessageCount))
}

// silentEnd identifies the end of a turn that brings no messages, as of hosts that
// ingest one by one: by the newest message there is and by what is reported. Told
// again before anything else was said, it is the same end.
func (w *writer) silentEnd(ctx context.Context, p contextengine.AfterTurnParams, end store.NewEvent) (link, error) {
	s, err := w.cfg.Log.Session(ctx, p.Tenant, p.SessionKey)
	if err != nil && !errors.Is(err, contextengine.ErrUnknownSession) {
		return link{}, err
	}
	chain := newChain(append([]byte("end "), seedOf(p)...))
	chain = chain.next(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(s.LeafSeq))))
	return chain.next(sha256.Sum256(end.Body)), nil
}

// A link is the hash of a sequence of payloads.
type link [32]byte

func newChain(seed []byte) link { return sha256.Sum256(seed) }

func (l link) next(hash [32]byte) link { return sha256.Sum256(append(l[:], hash[:]...)) }

// report gathers what the host said of its budget and the model call. Where it
// names a model and no budget, the model's is meant.
func (w *writer) report(budget *int, usage *contextengine.Usage, rc *contextengine.RuntimeContext) (events.TurnCompletedBody, error) {
	var r events.TurnCompletedBody
	if budget == nil && rc != nil && rc.TokenBudget != nil {
		budget = rc.TokenBudget
	}
	if budget != nil {
		if err := checkBudget(*budget); err != nil {
			return r, err
		}
		r.TokenBudget = *budget
	}
	if usage != nil {
		r.PromptTokens = usage.PromptTokens()
	}
	if rc != nil {
		r.Model = rc.ModelID
	}
	if r.TokenBudget == 0 {
		r.TokenBudget = w.cfg.Models.Budget(r.Model)
	}
	return r, nil
}

// maxBudget bounds budgets where arithmetic on them is still exact.
const maxBudget = 1_000_000_000_000

func checkBudget(budget int) error {
	if budget <= 0 || budget > maxBudget {
		return &contextengine.InvalidError{Field: "tokenBudget", Reason: fmt.Sprintf("a number of tokens from 1 to %d", int64(maxBudget))}
	}
	return nil
}

func completed(r events.TurnCompletedBody) store.NewEvent {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	return store.NewEvent{Type: events.TurnCompleted, Body: body}
}

// announce tells others of a finished turn and answers what it set in motion.
func (w *writer) announce(s contextengine.Session, a store.Appended) contextengine.CompactionStatus {
	w.heard(s, a)
	if !a.Duplicate {
		w.cfg.Notifier.TurnCompleted(s.Tenant, a.SID, a.Head, a.Epoch)
	}
	if !a.Debt {
		return contextengine.CompactionNone
	}
	w.cfg.Notifier.CompactionOwed(s.Tenant, a.SID, a.Epoch)
	return contextengine.CompactionScheduled
}
