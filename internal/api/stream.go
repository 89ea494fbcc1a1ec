package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

func serveEventStream(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	after, err := seq("after", q.Get("after"), 0)
	if err != nil {
		return err
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = seq("Last-Event-ID", last, 0); err != nil {
			return err
		}
	}
	log := c.api.cfg.Log
	s, err := log.Session(c.ctx, c.tenant, c.session)
	if err != nil {
		return err
	}
	from := logReader{log: log, tenant: c.tenant, sid: s.SID, key: jsonText(s.Key), after: after}
	probe := from
	if err := c.begins(probe.read); err != nil {
		return err
	}
	return c.follow(from.read, func(ctx context.Context) error {
		// An erased session's stream must end, and not turn into the next one's.
		now, err := log.Session(ctx, c.tenant, c.session)
		if err == nil && now.SID != s.SID {
			err = contextengine.ErrUnknownSession
		}
		return err
	})
}

func serveFeedStream(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	after, err := decodeCursor("after", q.Get("after"))
	if err != nil {
		return err
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = decodeCursor("Last-Event-ID", last); err != nil {
			return err
		}
	}
	from := feedReader{log: c.api.cfg.Log, tenant: c.tenant, after: after}
	probe := from
	if err := c.begins(probe.read); err != nil {
		return err
	}
	return c.follow(from.read, func(context.Context) error { return nil })
}

// begins reports whether what follows next can be read: a stream that has begun
// cannot say any more why it ends, and its client would come back for ever.
func (c *call) begins(read reader) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.api.cfg.Timeout)
	defer cancel()
	_, err := read(ctx, bound{rows: 1, bytes: 1})
	return err
}

// streamRetry is after how many milliseconds a client should come back.
const streamRetry = 1000

// follow writes what read finds until the client leaves, the node drains or
// alive says that there is nothing left to follow. Postgres being away does not
// end it: a browser that meets a 503 on reconnecting never tries again.
func (c *call) follow(read reader, alive func(context.Context) error) error {
	leave, ok := c.api.streams.enter(c.tenant, c.api.cfg.Limits.Streams)
	if !ok {
		p := kindRate.problem(fmt.Sprintf("this tenant has %d streams open on this node", c.api.cfg.Limits.Streams)).retry(5)
		p.Limit = int64(c.api.cfg.Limits.Streams)
		return p
	}
	defer leave()
	c.api.metrics.streams.Inc()
	defer c.api.metrics.streams.Dec()
	wake, cancel := c.wake()
	defer cancel()

	out := newSSE(c)
	defer out.end()
	if err := out.begin(); err != nil || c.r.Method == http.MethodHead {
		return err
	}
	poll := time.NewTicker(c.api.cfg.Poll)
	defer poll.Stop()
	beat := time.NewTicker(c.api.cfg.Heartbeat)
	defer beat.Stop()
	for {
		more, err := c.pass(read, out)
		if err != nil {
			return err
		}
		if more { // no waiting, but do notice the end
			select {
			case <-c.ctx.Done():
				return nil
			case <-c.api.draining:
				return out.bye()
			default:
				continue
			}
		}
		select {
		case <-c.ctx.Done():
			return nil
		case <-c.api.draining:
			return out.bye()
		case <-wake:
		case <-poll.C:
		case <-beat.C:
			if err := out.beat(); err != nil {
				return err
			}
			if c.expelled() {
				return out.bye()
			}
			if err := alive(c.ctx); errors.Is(err, contextengine.ErrUnknownSession) {
				return out.bye()
			}
		}
	}
}

// pass reads once and writes what it found.
func (c *call) pass(read reader, out *sse) (more bool, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.api.cfg.Timeout)
	defer cancel()
	found, err := read(ctx, bound{rows: chunkRows, bytes: chunkBytes})
	if _, damaged := errors.AsType[*vault.CorruptError](err); damaged {
		// What is before it is told; the next call then tells what it is.
		found, err = read(ctx, bound{rows: 1, bytes: 1})
	}
	switch {
	case c.ctx.Err() != nil:
		return false, nil
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFeedClosed), errors.Is(err, vault.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return false, nil
	case err != nil:
		return false, err
	}
	return found.more, out.rows(found.rows)
}

func (c *call) wake() (<-chan struct{}, func()) {
	if c.api.cfg.Waker == nil {
		return nil, func() {}
	}
	return c.api.cfg.Waker.Wake(c.tenant, c.session)
}

// sse writes server-sent events, each write within its own deadline: a client
// that does not read is cut off and resumes by its last id.
type sse struct {
	c       *call
	control *http.ResponseController
	buf     bytes.Buffer
}

func newSSE(c *call) *sse {
	return &sse{c: c, control: http.NewResponseController(c.w.ResponseWriter)}
}

func (s *sse) begin() error {
	h := s.c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s.c.note(http.StatusOK) // not at its end, which may be far
	s.c.w.WriteHeader(http.StatusOK)
	fmt.Fprintf(&s.buf, "retry: %d\n\n", streamRetry)
	return s.flush()
}

func (s *sse) beat() error {
	s.buf.WriteString(": \n\n")
	return s.flush()
}

func (s *sse) bye() error {
	fmt.Fprintf(&s.buf, ": the node ends this stream\nretry: %d\n\n", streamRetry)
	return s.flush()
}

func (s *sse) rows(rows []row) error {
	for i := range rows {
		s.buf.WriteString("id: ")
		s.buf.WriteString(rows[i].id)
		s.buf.WriteString("\ndata: ")
		s.data(rows[i].data)
		s.buf.WriteString("\n\n")
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// data writes JSON that may span lines, as messages do that were sent so.
func (s *sse) data(b []byte) {
	for {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			s.buf.Write(b)
			return
		}
		s.buf.Write(b[:i])
		s.buf.WriteString("\ndata: ")
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		}
		b = b[i+1:]
	}
}

func (s *sse) flush() error {
	defer s.buf.Reset()
	_ = s.control.SetWriteDeadline(time.Now().Add(s.c.api.cfg.StreamWrite))
	if _, err := s.c.w.Write(s.buf.Bytes()); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// end leaves the connection without a deadline for the request after this one.
func (s *sse) end() { _ = s.control.SetWriteDeadline(time.Time{}) }

// streamCounts counts the open streams of each tenant.
type streamCounts struct {
	mu   sync.Mutex
	open map[string]int
}

func (s *streamCounts) enter(tenant string, most int) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[tenant] >= most {
		return nil, false
	}
	if s.open == nil {
		s.open = make(map[string]int)
	}
	s.open[tenant]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[tenant]--; s.open[tenant] == 0 {
			delete(s.open, tenant)
		}
	}, true
}
