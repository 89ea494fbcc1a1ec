package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Summary is a node of the summary tree.
type Summary struct {
	ID     int64  `json:"id"`
	Live   bool   `json:"live"`
	Level  int    `json:"level"`
	Epoch  int64  `json:"epoch"`
	Tokens int64  `json:"tokens"`
	Text   string `json:"text"`
	// Summarizer wrote it. Degraded: a rule did, because no model could; it is
	// written anew when one can.
	Summarizer string `json:"summarizer"`
	Degraded   bool   `json:"degraded"`
	CostMicros int64  `json:"costMicros"`
}

// Source is one thing that a summary covers: an event by Seq or a summary by ID.
type Source struct {
	Kind string `json:"kind"`
	Seq  int64  `json:"seq"`
	ID   int64  `json:"id"`
}

// Summaries lists a session's summaries.
func (c *Client) Summaries(ctx context.Context, key string) ([]Summary, json.RawMessage, error) {
	v, raw, err := into[struct {
		Summaries []Summary `json:"summaries"`
	}](c.call(ctx, http.MethodGet, sessionPath(key, "summaries"), nil, nil))
	return v.Summaries, raw, err
}

// Sources lists what a summary covers directly.
func (c *Client) Sources(ctx context.Context, key string, id int64) ([]Source, error) {
	v, _, err := into[struct {
		Sources []Source `json:"sources"`
	}](c.call(ctx, http.MethodGet, sessionPath(key, fmt.Sprintf("summaries/%d/sources", id)), nil, nil))
	return v.Sources, err
}

// Expansion is a page of what a summary covers, in words. Next is nil at the end.
type Expansion struct {
	ID     int64          `json:"id"`
	Items  []ExpandedItem `json:"items"`
	Tokens int            `json:"tokens"`
	Next   *int           `json:"next"`
	Total  int            `json:"total"`
}

// ExpandedItem is a message by Seq or a summary by ID.
type ExpandedItem struct {
	Kind       string    `json:"kind"`
	SessionKey string    `json:"sessionKey"`
	Seq        int64     `json:"seq"`
	ID         int64     `json:"id"`
	Role       string    `json:"role"`
	Time       time.Time `json:"time"`
	Text       string    `json:"text"`
	Tokens     int       `json:"tokens"`
	Cut        bool      `json:"cut"`
}

// Expand reads what a summary covers: one level down, or all messages under it.
func (c *Client) Expand(ctx context.Context, key string, id int64, maxTokens, after int, messages bool) (Expansion, json.RawMessage, error) {
	q := url.Values{}
	if maxTokens > 0 {
		q.Set("maxTokens", strconv.Itoa(maxTokens))
	}
	if after > 0 {
		q.Set("after", strconv.Itoa(after))
	}
	if messages {
		q.Set("messages", "true")
	}
	return into[Expansion](c.call(ctx, http.MethodGet, sessionPath(key, fmt.Sprintf("summaries/%d/expand", id)), q, nil))
}
