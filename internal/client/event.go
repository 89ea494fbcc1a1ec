package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Event is a row of a session's log. Message is what the host sent, byte for
// byte; Data what an event of another type says.
type Event struct {
	Seq         int64  `json:"seq"`
	Type        string `json:"type"`
	SessionKey  string `json:"sessionKey"`
	Epoch       int64  `json:"epoch"`
	Role        string `json:"role"`
	IsHeartbeat bool   `json:"isHeartbeat"`
	Tokens      int64  `json:"tokens"`
	// ParentSeq is the message before this one on its branch.
	ParentSeq  int64           `json:"parentSeq"`
	Message    json.RawMessage `json:"message"`
	Data       json.RawMessage `json:"data"`
	RecordedAt time.Time       `json:"recordedAt"`

	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the row's text.
func (e *Event) UnmarshalJSON(b []byte) error {
	type plain Event
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Events is a page of a session's log. next is 0 on the last one.
func (c *Client) Events(ctx context.Context, key string, after int64, limit int) (rows []Event, next int64, err error) {
	q := page(limit)
	if after > 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	v, _, err := into[struct {
		Events []Event         `json:"events"`
		Next   json.RawMessage `json:"next"`
	}](c.call(ctx, http.MethodGet, sessionPath(key, "events"), q, nil))
	if err != nil {
		return nil, 0, err
	}
	if text := cursor(v.Next); text != "" {
		if next, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, 0, fmt.Errorf("the node's cursor %q is not a seq", text)
		}
	}
	return v.Events, next, nil
}

// Stream hands over the events after the given seq, in order, as they come,
// until ctx ends, see ends or the node closes the stream (nil then).
func (c *Client) Stream(ctx context.Context, key string, after int64, see func(Event) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+sessionPath(key, "events/stream"), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return &UnreachableError{URL: c.base, Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return readProblem(res)
	}
	return readStream(res.Body, see)
}

// readStream reads server-sent events whose data is a row of the log.
func readStream(r io.Reader, see func(Event) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var data []byte
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // an event without its empty line was cut off
		}
		if err != nil {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if part, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(part, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // id:, event:, retry: and comments
		}
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("the stream cannot be read: %w", err)
		}
		data = data[:0]
		if err := see(e); err != nil {
			return err
		}
	}
}
