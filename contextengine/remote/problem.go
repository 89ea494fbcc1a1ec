package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/engined/engined/contextengine"
)

// problemBase is what the type of every problem starts with; the slug follows.
// It is a name, not a place.
const problemBase = "https://github.com/engined/engined/problems/"

// The slugs of the wire. The first ten are the contract's own errors.
const (
	slugUnknown     = "unknown-session"
	slugErased      = "session-erased"
	slugNothing     = "nothing-to-undo"
	slugExists      = "session-exists"
	slugBegan       = "subagent-began"
	slugIdempotency = "idempotency-conflict"
	slugEpoch       = "epoch-conflict"
	slugStaleHead   = "stale-head"
	slugTooLarge    = "too-large"
	slugValidation  = "validation"

	slugMalformed    = "malformed"
	slugUnauthorized = "unauthorized"
	slugNotFound     = "not-found"
	slugMethod       = "method-not-allowed"
	slugSlowBody     = "request-timeout"
	slugMedia        = "unsupported-media-type"
	slugInternal     = "internal"
	slugUnsupported  = "unsupported"
	slugDeadline     = "deadline"
)

// problem is an RFC 9457 problem with the fields that a program needs.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	Head   *int64 `json:"head,omitempty"`
	Epoch  *int64 `json:"epoch,omitempty"`
	Seq    int64  `json:"seq,omitempty"`
	Key    string `json:"key,omitempty"`
}

func newProblem(status int, slug, detail string) *problem {
	return &problem{Type: problemBase + slug, Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p *problem) Error() string { return p.Detail }

// slug is the end of the type; "" for none.
func (p *problem) slug() string {
	if p.Type == "" || p.Type == "about:blank" {
		return ""
	}
	return path.Base(p.Type)
}

// problemOf says on the wire what an engine's error means. Text that nobody
// foresaw stays out unless expose is set.
func problemOf(err error, expose bool) *problem {
	var (
		p        *problem
		bad      *contextengine.InvalidError
		stale    *contextengine.StaleHeadError
		epoch    *contextengine.EpochConflictError
		conflict *contextengine.IdempotencyConflictError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		status, slug := http.StatusUnprocessableEntity, slugValidation
		if bad.TooLarge {
			status, slug = http.StatusRequestEntityTooLarge, slugTooLarge
		}
		p = newProblem(status, slug, bad.Error())
		p.Field, p.Limit = bad.Field, bad.Limit
	case errors.As(err, &stale):
		p = newProblem(http.StatusPreconditionFailed, slugStaleHead, stale.Error())
		p.Field, p.Head = "expectedHead", &stale.Head
	case errors.As(err, &epoch):
		p = newProblem(http.StatusConflict, slugEpoch, epoch.Error())
		p.Field, p.Epoch = "expectedEpoch", &epoch.Epoch
	case errors.As(err, &conflict):
		p = newProblem(http.StatusConflict, slugIdempotency, conflict.Error())
		p.Seq, p.Key = conflict.Seq, conflict.Key
	case errors.Is(err, contextengine.ErrUnknownSession):
		p = newProblem(http.StatusNotFound, slugUnknown, "no session has this key")
	case errors.Is(err, contextengine.ErrSessionErased):
		p = newProblem(http.StatusConflict, slugErased, "the session was erased")
	case errors.Is(err, contextengine.ErrNothingToUndo):
		p = newProblem(http.StatusConflict, slugNothing, "the session has no compaction that could be undone")
	case errors.Is(err, contextengine.ErrSessionExists):
		p = newProblem(http.StatusConflict, slugExists, "a session has this key already")
	case errors.Is(err, contextengine.ErrSubagentBegan):
		p = newProblem(http.StatusConflict, slugBegan, "the sub-agent has begun")
	case errors.Is(err, errors.ErrUnsupported):
		p = newProblem(http.StatusNotImplemented, slugUnsupported, "the engine does not serve this call")
	case errors.Is(err, context.DeadlineExceeded):
		p = newProblem(http.StatusGatewayTimeout, slugDeadline, "the engine did not finish in time")
	default:
		p = newProblem(http.StatusInternalServerError, slugInternal, "the engine failed")
		if expose {
			p.Detail = err.Error()
		}
	}
	return p
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // no field of a problem can fail to marshal
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that is gone does not read its problem
}

// expected is what a request said, for errors that repeat it.
type expected struct {
	head, epoch *int64
	key         string
}

// errorOf reads an answer that is not 2xx: one of the contract's errors where
// it is one, else a StatusError.
func errorOf(op string, res *http.Response, body []byte, req expected) error {
	var p problem
	if json.Unmarshal(body, &p) != nil {
		p = problem{Detail: shape(body)}
	}
	detail, _ := strings.CutPrefix(p.Detail, p.Field+": ")
	slug := p.slug()
	switch {
	case slug == slugUnknown && res.StatusCode == http.StatusNotFound:
		return contextengine.ErrUnknownSession
	case slug == slugErased && res.StatusCode == http.StatusConflict:
		return contextengine.ErrSessionErased
	case slug == slugNothing && res.StatusCode == http.StatusConflict:
		return contextengine.ErrNothingToUndo
	case slug == slugExists && res.StatusCode == http.StatusConflict:
		return contextengine.ErrSessionExists
	case slug == slugBegan && res.StatusCode == http.StatusConflict:
		return contextengine.ErrSubagentBegan
	case slug == slugIdempotency && res.StatusCode == http.StatusConflict:
		if p.Key != "" {
			req.key = p.Key
		}
		return &contextengine.IdempotencyConflictError{Key: req.key, Seq: p.Seq}
	case slug == slugEpoch && p.Epoch != nil:
		return &contextengine.EpochConflictError{Expected: value(req.epoch), Epoch: *p.Epoch}
	case slug == slugStaleHead && p.Head != nil:
		return &contextengine.StaleHeadError{Expected: value(req.head), Head: *p.Head}
	case slug == slugValidation, slug == slugTooLarge:
		return &contextengine.InvalidError{Field: p.Field, Reason: detail, Limit: p.Limit, TooLarge: slug == slugTooLarge}
	}
	return &StatusError{
		Op: op, Status: res.StatusCode, Slug: excerpt([]byte(slug)), Detail: excerpt([]byte(p.Detail)),
		RetryAfter: retryAfter(res.Header.Get("Retry-After")), unsupported: lacks(op, res.StatusCode),
	}
}

// lacks reports that the status says "there is no such call": 501 always; for a
// call that an engine may lack also what a router answers by itself.
func lacks(op string, status int) bool {
	return status == http.StatusNotImplemented ||
		optional(op) && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed)
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// shape says what a body that is no answer looks like, in words of ours: what an
// engine writes may be what it was sent, and this goes to logs.
func shape(body []byte) string {
	b := bytes.TrimSpace(body)
	what := "text"
	switch {
	case len(b) == 0:
		return "empty"
	case b[0] == '<':
		what = "HTML or XML"
	case json.Valid(b):
		what = "JSON"
	}
	return fmt.Sprintf("%d bytes of %s", len(body), what)
}

// excerpt is a short printable piece of what a stranger sent, for a log line.
func excerpt(b []byte) string {
	const most = 300
	b = bytes.TrimSpace(b)
	if len(b) > most {
		b = b[:most]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b), "\ufffd"))
}

// retryAfter reads the header's seconds; anything odd is no wish.
func retryAfter(header string) time.Duration {
	d, err := time.ParseDuration(header + "s")
	if err != nil || d < 0 || d > time.Hour {
		return 0
	}
	return d
}
