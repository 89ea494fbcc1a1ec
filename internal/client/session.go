package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Session is a row of the session listing. Fields that the node does not send
// are zero.
type Session struct {
	SessionKey string `json:"sessionKey"`
	Head       int64  `json:"head"`
	Epoch      int64  `json:"epoch"`
	Tokens     int64  `json:"tokens"`
	// Debt is what a compaction is owed for, in tokens.
	Debt        int64     `json:"debt"`
	TokenBudget int64     `json:"tokenBudget"`
	UpdatedAt   time.Time `json:"updatedAt"`
	// Attempts are the newest tries at a compaction; only Session sends them.
	Attempts []Attempt `json:"attempts"`

	Raw json.RawMessage `json:"-"`
}

// Attempt is one try at a compaction.
type Attempt struct {
	Epoch     int64     `json:"epoch"`
	Worker    string    `json:"worker"`
	Outcome   string    `json:"outcome"`
	Error     string    `json:"error"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
}

// UnmarshalJSON keeps the row's text.
func (s *Session) UnmarshalJSON(b []byte) error {
	type plain Session
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	s.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Sessions is a page of sessions; Next is empty on the last one.
func (c *Client) Sessions(ctx context.Context, after string, limit int) (rows []Session, next string, err error) {
	q := page(limit)
	if after != "" {
		q.Set("after", after)
	}
	v, _, err := into[struct {
		Sessions []Session       `json:"sessions"`
		Next     json.RawMessage `json:"next"`
	}](c.call(ctx, http.MethodGet, "/v1/sessions", q, nil))
	return v.Sessions, cursor(v.Next), err
}

// Session is one session.
func (c *Client) Session(ctx context.Context, key string) (Session, error) {
	s, _, err := into[Session](c.call(ctx, http.MethodGet, sessionPath(key, ""), nil, nil))
	return s, err
}

func page(limit int) url.Values {
	q := url.Values{}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}

// cursor is the text of a cursor that is a string or a number; none is "".
func cursor(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}
