package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/access"
)

// call is one request on its way through an operation.
type call struct {
	api *API
	op  *operation
	w   response
	r   *http.Request
	// ctx carries the operation's deadline.
	ctx context.Context
	// tenant is set where the operation wants a key; session where its path
	// names one.
	tenant, session string
	who             access.Principal
	noted           bool // in the audit log
	id              string
}

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statusGone is what the log says of a client that left before its answer.
const statusGone = 499

// run answers one request: from here on every outcome is an answer, a line in
// the log and a number.
func (a *API) run(op *operation, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{api: a, op: op, w: response{ResponseWriter: w}, r: r, ctx: r.Context(), id: a.requestID(r)}
	a.metrics.inFlight.Inc()
	defer c.finish(start)
	secure(w.Header())
	strict(w.Header(), r)
	w.Header()["X-Request-Id"] = []string{c.id}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	if err := c.api.checkHost(c.r); err != nil {
		return err
	}
	if err := c.api.crossOrigin.Check(c.r); err != nil {
		return kindForbidden.problem("a browser may call this only from its own origin")
	}
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if !c.op.public {
		if err := c.admit(); err != nil {
			return err
		}
	}
	if c.op.keyed {
		c.session = pathKey(c.r)
		k := check{limits: &c.api.cfg.Limits}
		k.required("sessionKey", c.session)
		if k.err != nil {
			return k.err
		}
	}
	if d := c.api.timeout(c.op); d > 0 {
		ctx, cancel := context.WithTimeout(c.ctx, d)
		defer cancel()
		c.ctx = ctx
	}
	done, err := c.charge()
	if err != nil {
		return err
	}
	defer done()
	return c.op.serve(c)
}

// fail answers with a problem, unless nobody listens any more or the answer
// has begun.
func (c *call) fail(err error) {
	if c.w.status != 0 {
		level := slog.LevelWarn
		if c.r.Context().Err() != nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			level = slog.LevelDebug // the client left, which is its right
		}
		c.log(level, "answer broken off", err)
		return
	}
	if c.r.Context().Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		c.w.status = statusGone
		return
	}
	p := problemOf(err)
	switch {
	case p.Status == http.StatusInternalServerError:
		c.log(slog.LevelError, "request failed", err)
	case p.Status >= http.StatusInternalServerError:
		c.log(slog.LevelWarn, "request not served", err)
	}
	c.drain(p)
	p.write(&c.w)
}

func (c *call) log(level slog.Level, msg string, err error) {
	c.api.log.LogAttrs(context.WithoutCancel(c.ctx), level, msg,
		slog.String("request", c.id), slog.String("route", c.op.path), slog.Any("error", err))
}

func (c *call) finish(start time.Time) {
	a := c.api
	a.metrics.inFlight.Dec()
	var again any
	if v := recover(); v != nil {
		again = c.recovered(v)
	}
	if c.w.status == 0 {
		c.w.status = http.StatusOK
	}
	took := time.Since(start)
	c.op.observe(c.w.status, took)
	c.note(c.w.status)
	if a.log.Enabled(c.ctx, slog.LevelInfo) {
		// No bodies, no keys, no query: a log line is read by more people than
		// the session is.
		a.log.LogAttrs(context.WithoutCancel(c.ctx), slog.LevelInfo, "request",
			slog.String("request", c.id), slog.String("method", c.r.Method), slog.String("route", c.op.path),
			slog.Int("status", c.w.status), slog.Duration("took", took), slog.Int64("bytes", c.w.bytes))
	}
	if again != nil {
		panic(again)
	}
}

// recovered answers for a panic. It returns what must go on to net/http.
func (c *call) recovered(v any) any {
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
		return v
	}
	c.api.metrics.panics.Inc()
	c.api.log.LogAttrs(context.WithoutCancel(c.ctx), slog.LevelError, "panic", slog.String("request", c.id),
		slog.String("route", c.op.path), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	if c.w.status != 0 {
		return http.ErrAbortHandler // half an answer must not look whole
	}
	kindInternal.problem("the error is in the node's log under this request's id").write(&c.w)
	return nil
}

// named is the contract's session of this call.
func (c *call) named(from contextengine.Session) contextengine.Session {
	from.Tenant, from.SessionKey = c.tenant, c.session
	return from
}

// requestID is the caller's own, if it is short and plain, else a new one.
func (a *API) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-ID"); id != "" && len(id) <= 64 && plainID(id) {
		return id
	}
	return a.idPrefix + strconv.FormatUint(a.ids.Add(1), 36)
}

func plainID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_', b == '.', b == ':':
		default:
			return false
		}
	}
	return true
}

// secure sets the headers that every answer carries. The values are shared and
// never changed in place.
func secure(h http.Header) {
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	h["Referrer-Policy"] = noReferrer
	h["X-Frame-Options"] = noFrames
	h["Content-Security-Policy"] = noContent
}

var (
	noSniff    = []string{"nosniff"}
	noStore    = []string{"no-store"}
	noReferrer = []string{"no-referrer"}
	noFrames   = []string{"DENY"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
)
