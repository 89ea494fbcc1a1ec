package client

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// Hit is a message or a summary that holds what was looked for.
type Hit struct {
	SessionKey string    `json:"sessionKey"`
	Seq        int64     `json:"seq"`
	Role       string    `json:"role"`
	Kind       string    `json:"kind"`
	Tool       string    `json:"tool"`
	Epoch      int64     `json:"epoch"`
	At         time.Time `json:"at"`
	// Active: no reset or rewind hides it from its session's window.
	Active  bool   `json:"active"`
	Snippet string `json:"snippet"`
	// Marks are the matches in the snippet, in code points.
	Marks []Mark  `json:"marks"`
	Score float64 `json:"score"`

	Raw json.RawMessage `json:"-"`
}

// Mark is a place in a snippet; End is not included.
type Mark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// UnmarshalJSON keeps the row's text.
func (h *Hit) UnmarshalJSON(b []byte) error {
	type plain Hit
	if err := json.Unmarshal(b, (*plain)(h)); err != nil {
		return err
	}
	h.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Found is a page of hits.
type Found struct {
	Hits []Hit
	// Next is the after of the next page, "" on the last one.
	Next string
	// Partial: the node's time for a search was over; Next goes on.
	Partial bool
	// Current: when the search began, all of the log was indexed.
	Current bool
	// Note says what was not searched.
	Note string
}

// Search looks for what q says. filters are further parameters of the call
// (docs/search.md), after the Next of the page before.
func (c *Client) Search(ctx context.Context, q string, filters url.Values, after string, limit int) (Found, error) {
	query := page(limit)
	maps.Copy(query, filters)
	query.Set("q", q)
	if after != "" {
		query.Set("after", after)
	}
	v, _, err := into[struct {
		Hits    []Hit           `json:"hits"`
		Next    json.RawMessage `json:"next"`
		Partial bool            `json:"partial"`
		Index   struct {
			Current bool   `json:"current"`
			Note    string `json:"note"`
		} `json:"index"`
	}](c.call(ctx, http.MethodGet, "/v1/search", query, nil))
	return Found{Hits: v.Hits, Next: cursor(v.Next), Partial: v.Partial, Current: v.Index.Current, Note: v.Index.Note}, err
}
