package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/engined/engined/contextengine"
)

// IngestBatch stores messages together, in order. keys has one idempotency key
// per message.
func (c *Client) IngestBatch(ctx context.Context, key string, messages []json.RawMessage, keys []string) (contextengine.IngestBatchResult, error) {
	var body bytes.Buffer
	body.WriteString(`{"messages":[`)
	for i, m := range messages {
		if i > 0 {
			body.WriteByte(',')
		}
		// Written, not marshalled: json.Marshal would compact and escape it.
		body.Write(m)
	}
	body.WriteByte(']')
	if len(keys) > 0 {
		text, err := json.Marshal(keys)
		if err != nil {
			return contextengine.IngestBatchResult{}, err
		}
		body.WriteString(`,"idempotencyKeys":`)
		body.Write(text)
	}
	body.WriteByte('}')
	res, _, err := into[contextengine.IngestBatchResult](
		c.call(ctx, http.MethodPost, sessionPath(key, "ingest-batch"), nil, body.Bytes()))
	return res, err
}

// Transcript hands over a page of a host's transcript.
func (c *Client) Transcript(ctx context.Context, key string, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	var body bytes.Buffer
	body.WriteString(`{"entries":[`)
	for i, e := range p.Entries {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(e) // written, not marshalled, as above
	}
	rest, err := json.Marshal(struct {
		contextengine.TranscriptParams
		// Entries stands before the embedded one, and is left out.
		Entries *struct{} `json:"entries,omitempty"`
	}{TranscriptParams: p})
	if err != nil {
		return contextengine.TranscriptResult{}, err
	}
	body.WriteByte(']')
	if len(rest) > len("{}") {
		body.WriteByte(',')
	}
	body.Write(rest[1:])
	res, _, err := into[contextengine.TranscriptResult](c.call(ctx, http.MethodPost, sessionPath(key, "transcript"), nil, body.Bytes()))
	return res, err
}

// AfterTurn tells that a turn ended whose messages are stored already.
func (c *Client) AfterTurn(ctx context.Context, key string, budget int) (contextengine.AfterTurnResult, error) {
	res, _, err := post[contextengine.AfterTurnResult](ctx, c, sessionPath(key, "after-turn"), contextengine.AfterTurnParams{
		Messages: []json.RawMessage{}, TokenBudget: &budget,
	})
	return res, err
}

// Assemble asks for a window.
func (c *Client) Assemble(ctx context.Context, key string, p contextengine.AssembleParams) (contextengine.AssembleResult, json.RawMessage, error) {
	return post[contextengine.AssembleResult](ctx, c, sessionPath(key, "assemble"), p)
}

// Compact asks for a compaction now.
func (c *Client) Compact(ctx context.Context, key string, p contextengine.CompactParams) (contextengine.CompactResult, json.RawMessage, error) {
	return post[contextengine.CompactResult](ctx, c, sessionPath(key, "compact"), p)
}

func post[T any](ctx context.Context, c *Client, path string, params any) (T, json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		var none T
		return none, nil, err
	}
	return into[T](c.call(ctx, http.MethodPost, path, nil, body))
}
