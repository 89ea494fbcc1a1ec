package client

import (
	"context"
	"fmt"
	"net/http"
)

// Summary is a node of the summary tree.
type Summary struct {
	ID     int64  `json:"id"`
	Live   bool   `json:"live"`
	Level  int    `json:"level"`
	Epoch  int64  `json:"epoch"`
	Tokens int64  `json:"tokens"`
	Text   string `json:"text"`
}

// Source is one thing that a summary covers: an event by Seq or a summary by ID.
type Source struct {
	Kind string `json:"kind"`
	Seq  int64  `json:"seq"`
	ID   int64  `json:"id"`
}

// Summaries lists a session's summaries.
func (c *Client) Summaries(ctx context.Context, key string) ([]Summary, error) {
	v, _, err := into[struct {
		Summaries []Summary `json:"summaries"`
	}](c.call(ctx, http.MethodGet, sessionPath(key, "summaries"), nil, nil))
	return v.Summaries, err
}

// Sources lists what a summary covers directly.
func (c *Client) Sources(ctx context.Context, key string, id int64) ([]Source, error) {
	v, _, err := into[struct {
		Sources []Source `json:"sources"`
	}](c.call(ctx, http.MethodGet, sessionPath(key, fmt.Sprintf("summaries/%d/sources", id)), nil, nil))
	return v.Sources, err
}
