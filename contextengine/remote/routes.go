package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/engined/engined/contextengine"
)

// routesOf are the calls that an engine serves.
func routesOf(e contextengine.Engine) map[string]route {
	routes := map[string]route{opIngest: serveIngest(e), opAssemble: serveAssemble(e), opCompact: serveCompact(e)}
	if e, ok := e.(contextengine.Bootstrapper); ok {
		routes[opBootstrap] = serveBootstrap(e)
	}
	if e, ok := e.(contextengine.BatchIngester); ok {
		routes[opIngestBatch] = serveIngestBatch(e)
	}
	if e, ok := e.(contextengine.TurnCommitter); ok {
		routes[opCommitTurn] = serveCommitTurn(e)
	}
	if e, ok := e.(contextengine.AfterTurner); ok {
		routes[opAfterTurn] = serveAfterTurn(e)
	}
	if e, ok := e.(contextengine.Maintainer); ok {
		routes[opMaintain] = serveMaintain(e)
	}
	if e, ok := e.(contextengine.SubagentSpawner); ok {
		undo := &rollbacks{}
		routes[opSpawn], routes[opRollback] = serveSpawn(e, undo), serveRollback(undo)
	}
	if e, ok := e.(contextengine.SubagentEnder); ok {
		routes[opEnded] = serveEnded(e)
	}
	return routes
}

// decode reads the body; an empty one leaves v as it is.
func (q *request) decode(v any) error {
	switch {
	case len(q.body) == 0:
		return nil
	case !isObject(q.body):
		return invalid("body", "must be a JSON object")
	}
	err := json.Unmarshal(q.body, v)
	var (
		many   *tooManyError
		kind   *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return newProblem(http.StatusBadRequest, slugMalformed, "the body is not valid JSON: "+syntax.Error())
	case errors.As(err, &many):
		return &contextengine.InvalidError{Field: "messages", Reason: err.Error(), Limit: int64(many.most), TooLarge: true}
	case errors.As(err, &kind):
		return invalid(kind.Field, "is of another type: "+kind.Value)
	}
	return invalid("messages", err.Error())
}

func (q *request) list() messageList { return messageList{most: q.h.opt.MaxMessages} }

// name sets what only the transport knows.
func (q *request) name(s *contextengine.Session) { s.Tenant, s.SessionKey = q.tenant, q.key }

// answer encodes a result; an engine that answers with broken messages fails.
func answer(v any, members ...member) ([]byte, error) {
	b, err := object(v, members...)
	if isInvalid(err) {
		return nil, fmt.Errorf("the engine's answer: %v", err) //nolint:errorlint // not the caller's fault
	}
	return b, err
}

func serveIngest(e contextengine.Engine) route {
	return func(q *request) ([]byte, error) {
		var p contextengine.IngestParams
		if err := q.decode(&p); err != nil {
			return nil, err
		}
		if err := checkMessage("message", p.Message); err != nil {
			return nil, err
		}
		q.name(&p.Session)
		res, err := e.Ingest(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}

func serveAssemble(e contextengine.Engine) route {
	return func(q *request) ([]byte, error) {
		body := struct {
			contextengine.AssembleParams
			Messages messageList `json:"messages"`
		}{Messages: q.list()}
		if err := q.decode(&body); err != nil {
			return nil, err
		}
		p := body.AssembleParams
		p.Messages = body.Messages.items
		q.name(&p.Session)
		res, err := e.Assemble(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(struct {
			contextengine.AssembleResult
			Messages *absent `json:"messages,omitempty"`
		}{AssembleResult: res}, many(res.Messages))
	}
}

func serveCompact(e contextengine.Engine) route {
	return func(q *request) ([]byte, error) {
		var p contextengine.CompactParams
		if err := q.decode(&p); err != nil {
			return nil, err
		}
		q.name(&p.Session)
		res, err := e.Compact(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		if res.Result == nil {
			return answer(res)
		}
		outcome, err := answer(struct {
			contextengine.CompactionOutcome
			Details *absent `json:"details,omitempty"`
		}{CompactionOutcome: *res.Result}, one("details", res.Result.Details))
		if err != nil {
			return nil, err
		}
		return answer(struct {
			contextengine.CompactResult
			Result *absent `json:"result,omitempty"`
		}{CompactResult: res}, one("result", outcome))
	}
}

func serveBootstrap(e contextengine.Bootstrapper) route {
	return func(q *request) ([]byte, error) {
		body := struct {
			contextengine.BootstrapParams
			Messages messageList `json:"messages"`
		}{Messages: q.list()}
		if err := q.decode(&body); err != nil {
			return nil, err
		}
		p := body.BootstrapParams
		p.Messages = body.Messages.items
		q.name(&p.Session)
		res, err := e.Bootstrap(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}

func serveIngestBatch(e contextengine.BatchIngester) route {
	return func(q *request) ([]byte, error) {
		body := struct {
			contextengine.IngestBatchParams
			Messages messageList `json:"messages"`
		}{Messages: q.list()}
		if err := q.decode(&body); err != nil {
			return nil, err
		}
		p := body.IngestBatchParams
		p.Messages = body.Messages.items
		if n := len(p.IdempotencyKeys); n > 0 && n != len(p.Messages) {
			return nil, invalid("idempotencyKeys", "must have one key per message")
		}
		q.name(&p.Session)
		res, err := e.IngestBatch(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}

func serveCommitTurn(e contextengine.TurnCommitter) route {
	return func(q *request) ([]byte, error) {
		body := struct {
			contextengine.CommitTurnParams
			Messages messageList `json:"messages"`
		}{Messages: q.list()}
		if err := q.decode(&body); err != nil {
			return nil, err
		}
		p := body.CommitTurnParams
		p.Messages = body.Messages.items
		q.name(&p.Session)
		res, err := e.CommitTurn(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}

func serveAfterTurn(e contextengine.AfterTurner) route {
	return func(q *request) ([]byte, error) {
		body := struct {
			contextengine.AfterTurnParams
			Messages messageList `json:"messages"`
		}{Messages: q.list()}
		if err := q.decode(&body); err != nil {
			return nil, err
		}
		p := body.AfterTurnParams
		p.Messages = body.Messages.items
		if p.PrePromptMessageCount < 0 || p.PrePromptMessageCount > len(p.Messages) {
			return nil, invalid("prePromptMessageCount", "must be from 0 to the number of messages")
		}
		q.name(&p.Session)
		res, err := e.AfterTurn(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}

func serveMaintain(e contextengine.Maintainer) route {
	return func(q *request) ([]byte, error) {
		var p contextengine.MaintainParams
		if err := q.decode(&p); err != nil {
			return nil, err
		}
		q.name(&p.Session)
		res, err := e.Maintain(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(res)
	}
}
