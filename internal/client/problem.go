package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// Problem is an answer of application/problem+json.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	Head   int64  `json:"head,omitempty"`
	Epoch  int64  `json:"epoch,omitempty"`
	// RetryAfter is the header's text; empty where the node did not send it.
	RetryAfter string `json:"-"`
	// Keyed: the call had an API key.
	Keyed bool `json:"-"`
}

// Slug is the end of Type: the word a program matches.
func (p *Problem) Slug() string {
	if p.Type == "" || p.Type == "about:blank" {
		return ""
	}
	return path.Base(p.Type)
}

func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	if p.Field != "" && !strings.Contains(text, p.Field) {
		text = p.Field + ": " + text
	}
	if slug := p.Slug(); slug != "" {
		return fmt.Sprintf("%s (%d %s)", text, p.Status, slug)
	}
	return fmt.Sprintf("%s (%d)", text, p.Status)
}

// UnreachableError says that no answer came.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string { return "no answer from " + e.URL + ": " + e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

func readProblem(res *http.Response) *Problem {
	p := &Problem{RetryAfter: res.Header.Get("Retry-After")}
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what came is shown
	if json.Unmarshal(raw, p) != nil || p.Title == "" && p.Detail == "" {
		p.Title, p.Detail = http.StatusText(res.StatusCode), strings.TrimSpace(string(raw))
	}
	p.Status = res.StatusCode
	return p
}

// Wait is how long the node asks to wait before the next try; 0 when it does
// not ask.
func (p *Problem) Wait() time.Duration {
	d, err := time.ParseDuration(p.RetryAfter + "s")
	if err != nil {
		return 0
	}
	return d
}
