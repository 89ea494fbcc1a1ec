package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
	"unicode/utf8"
)

// call is one call on its way to the engine.
type call struct {
	op, method, path, tenant string
	body                     []byte
	// twice: the call may be made again though the engine may have seen it.
	twice bool
	// limit is the most bytes of an answer.
	limit   int64
	timeout time.Duration
	expected
}

// get reads a route that belongs to no session.
func (c *Client) get(ctx context.Context, op, path string, into any) error {
	return c.do(ctx, &call{
		op: op, method: http.MethodGet, path: path, twice: true, limit: maxProblem, timeout: c.cfg.Timeout,
	}, into)
}

// do makes the call, again where that is safe, and decodes its answer. It
// returns within the call's timeout.
func (c *Client) do(ctx context.Context, k *call, into any) error {
	if c.calls != nil && optional(k.op) && !c.calls[k.op] {
		return &StatusError{
			Op: k.op, Status: http.StatusNotImplemented, Slug: slugUnsupported,
			Detail: "the engine does not serve this call", unsupported: true,
		}
	}
	if ctx.Err() != nil {
		return aborted(ctx, k.op)
	}
	inner, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	for try := 0; ; try++ {
		body, err := c.once(inner, k)
		switch {
		case ctx.Err() != nil:
			return aborted(ctx, k.op)
		case err == nil:
			return decode(k.op, body, into)
		case inner.Err() != nil:
			return &TimeoutError{Op: k.op, After: k.timeout}
		case try >= c.cfg.Retries || !again(err, k.twice):
			return err
		}
		pause := time.NewTimer(retryPause << min(try, 6))
		select {
		case <-pause.C:
		case <-inner.Done():
			pause.Stop()
			return err // the reason, rather than that there was no time left
		}
	}
}

// again reports a failure after which the call may be repeated.
func again(err error, twice bool) bool {
	var lost *UnreachableError
	return errors.As(err, &lost) && (!lost.Sent || twice)
}

// once makes the call and reads its whole answer.
func (c *Client) once(ctx context.Context, k *call) ([]byte, error) {
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.body)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.base+k.path, body)
	if err != nil {
		return nil, &ProtocolError{Op: k.op, Reason: "the call has no valid URL", Err: err}
	}
	c.head(req, k)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unanswered(k.op, err)
	}
	// Closing a body that was not read to its end ends the connection.
	defer res.Body.Close()
	if e := res.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &ProtocolError{Op: k.op, Reason: "the answer is compressed, which nobody asked for"}
	}
	if res.StatusCode/100 != 2 {
		// What can be read of a problem in time is enough.
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem))
		return nil, errorOf(k.op, res, text, k.expected)
	}
	return readAnswer(k, res)
}

func (c *Client) head(req *http.Request, k *call) {
	h := req.Header
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "engined-remote/1")
	if k.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if k.tenant != "" {
		h.Set(TenantHeader, url.QueryEscape(k.tenant))
	}
	if c.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	for name, values := range c.cfg.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
}

func readAnswer(k *call, res *http.Response) ([]byte, error) {
	over := &ProtocolError{Op: k.op, Reason: "the answer is too large", Limit: k.limit}
	if res.ContentLength > k.limit {
		return nil, over
	}
	var b bytes.Buffer
	if n := res.ContentLength; n > 0 {
		// A stated length is believed only so far.
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead)
	}
	switch _, err := b.ReadFrom(io.LimitReader(res.Body, k.limit+1)); {
	case err != nil:
		return nil, &ProtocolError{Op: k.op, Reason: "the answer broke off", Err: err}
	case int64(b.Len()) > k.limit:
		return nil, over
	}
	return b.Bytes(), nil
}

// unanswered tells an engine that is away from one that speaks no HTTP.
func unanswered(op string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL is the operator's to know, the path the user's
	}
	var (
		network *net.OpError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		errno   syscall.Errno
	)
	switch {
	case errors.As(err, &network):
		return &UnreachableError{Op: op, Sent: network.Op != "dial", Err: err}
	case errors.As(err, &cert), errors.As(err, &record):
		return &UnreachableError{Op: op, Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &errno),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &UnreachableError{Op: op, Sent: true, Err: err}
	}
	return &ProtocolError{Op: op, Reason: "the answer is not HTTP as it should be", Err: err}
}

// decode reads an answer; into checks its own shape where that says more than
// its types do.
func decode(op string, body []byte, into any) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return &ProtocolError{Op: op, Reason: "the answer is empty"}
	case !isObject(body):
		return &ProtocolError{Op: op, Reason: "the answer is " + shape(body) + ", not a JSON object"}
	case !utf8.Valid(body):
		return &ProtocolError{Op: op, Reason: "the answer is not valid UTF-8"}
	}
	if err := json.Unmarshal(body, into); err != nil {
		if many, ok := errors.AsType[*tooManyError](err); ok {
			return &ProtocolError{Op: op, Reason: "a list of the answer is too long", Limit: int64(many.most), Err: err}
		}
		return &ProtocolError{Op: op, Reason: "the answer has another shape", Err: err}
	}
	return nil
}
