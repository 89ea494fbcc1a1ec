package remote

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// HandlerOptions say who may call an engine and how much they may send. The
// zero value serves everyone who can reach the listener.
type HandlerOptions struct {
	// Token, if any, is the bearer token that every call must carry.
	Token string
	// Tenant tells whose sessions a request is about. By default the caller is
	// believed: Client says it in TenantHeader.
	Tenant func(*http.Request) (string, error)
	// MaxBodyBytes bounds a request. Default 65 MiB.
	MaxBodyBytes int64
	// MaxMessages bounds the messages of a request. Default 10,000.
	MaxMessages int
	// BodyTimeout is how long a request may take to arrive. Default 30 s.
	BodyTimeout time.Duration
	// ExposeErrors sends the text of an engine's unforeseen errors to the caller.
	ExposeErrors bool
	// Logger hears of failures and panics; never of content. Default: nobody.
	Logger *slog.Logger
}

// Handler serves an engine on the wire. What the engine does not implement
// answers 501 "unsupported". A panic of the engine is an answer of 500. The
// engine's context ends when the caller leaves.
//
// The handler routes by the escaped path and must see it: behind a prefix use
// http.StripPrefix, not a mux that cleans paths.
func Handler(e contextengine.Engine, o HandlerOptions) http.Handler {
	if o.Tenant == nil {
		o.Tenant = func(r *http.Request) (string, error) { return url.QueryUnescape(r.Header.Get(TenantHeader)) }
	}
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = 65 << 20
	}
	if o.MaxMessages <= 0 {
		o.MaxMessages = 10_000
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{engine: e, opt: o, routes: routesOf(e)}
	info := description{Info: e.Info()}
	info.Calls = slices.Sorted(maps.Keys(h.routes))
	h.info = info
	return h
}

type handler struct {
	engine contextengine.Engine
	opt    HandlerOptions
	routes map[string]route
	info   description
}

// route decodes a call, makes it and encodes its result.
type route func(q *request) ([]byte, error)

// request is one request on its way through a route.
type request struct {
	h *handler
	r *http.Request
	place
	body []byte
	// tenant is whose session it is.
	tenant string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := &firstByte{ResponseWriter: w}
	op := ""
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
			panic(v)
		}
		h.opt.Logger.Error("engine panicked", slog.String("call", op), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		if began.done {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
		newProblem(http.StatusInternalServerError, slugInternal, "the engine panicked").write(w)
	}()
	body, err := h.serve(began, r, &op)
	if err != nil {
		h.fail(began, r, op, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	began.done = true
	_, _ = w.Write(body) //nolint:gosec // JSON, and its media type says so
}

// firstByte remembers that an answer has begun.
type firstByte struct {
	http.ResponseWriter
	done bool
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *firstByte) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (h *handler) fail(w http.ResponseWriter, r *http.Request, op string, err error) {
	if r.Context().Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return // nobody listens any more
	}
	p := problemOf(err, h.opt.ExposeErrors)
	if p.Status >= http.StatusInternalServerError && p.Status != http.StatusNotImplemented {
		h.opt.Logger.Error("call failed", slog.String("call", op), slog.Any("error", err))
	}
	p.write(w)
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, op *string) ([]byte, error) {
	if !h.allowed(r) {
		return nil, newProblem(http.StatusUnauthorized, slugUnauthorized, "a valid token is required")
	}
	path := r.URL.EscapedPath()
	if path == infoPath {
		*op = opInfo
		if r.Method != http.MethodGet {
			return nil, wrongMethod(w, http.MethodGet)
		}
		return json.Marshal(h.info)
	}
	at, ok := parsePath(path)
	if !ok {
		return nil, newProblem(http.StatusNotFound, slugNotFound, "no such route")
	}
	*op = at.op
	serve, ok := h.routes[at.op]
	switch {
	case !ok && !known(at.op):
		return nil, newProblem(http.StatusNotFound, slugNotFound, "no such call")
	case r.Method != http.MethodPost:
		return nil, wrongMethod(w, http.MethodPost)
	case !ok:
		return nil, errors.ErrUnsupported
	}
	tenant, err := h.opt.Tenant(r)
	if err != nil {
		return nil, newProblem(http.StatusUnauthorized, slugUnauthorized, "the tenant can't be told")
	}
	if err := checkSession(contextengine.Session{SessionKey: at.key, Tenant: tenant}); err != nil {
		return nil, err
	}
	body, err := h.read(w, r)
	if err != nil {
		return nil, err
	}
	return serve(&request{h: h, r: r, place: at, tenant: tenant, body: body})
}

func known(op string) bool {
	switch op {
	case opIngest, opAssemble, opCompact, opBootstrap, opIngestBatch, opCommitTurn, opAfterTurn, opMaintain,
		opSpawn, opRollback, opEnded:
		return true
	}
	return false
}

func wrongMethod(w http.ResponseWriter, allow string) error {
	w.Header().Set("Allow", allow)
	return newProblem(http.StatusMethodNotAllowed, slugMethod, "use "+allow)
}

func (h *handler) allowed(r *http.Request) bool {
	if h.opt.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.opt.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// read takes the whole body, within size and time.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !isJSON(r.Header) || r.Header.Get("Content-Encoding") != "" {
		return nil, newProblem(http.StatusUnsupportedMediaType, slugMedia, "send plain application/json")
	}
	control := http.NewResponseController(w)
	// Unsupported by test recorders; then nobody is slow either.
	_ = control.SetReadDeadline(time.Now().Add(h.opt.BodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(unwrapped(w), r.Body, h.opt.MaxBodyBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		p := newProblem(http.StatusRequestEntityTooLarge, slugTooLarge, fmt.Sprintf("the body is larger than %d bytes", over.Limit))
		p.Limit = over.Limit
		return nil, p
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, slugSlowBody, "the body did not arrive in time")
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, slugMalformed, "the body can't be read")
	case !utf8.Valid(body):
		return nil, newProblem(http.StatusBadRequest, slugMalformed, "the body is not valid UTF-8")
	}
	_ = control.SetReadDeadline(time.Time{}) // it would cut the connection while the engine works
	return body, nil
}

// unwrapped is the server's own writer, which MaxBytesReader wants in order to
// end the connection of a client that goes on sending.
func unwrapped(w http.ResponseWriter) http.ResponseWriter {
	if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return u.Unwrap()
	}
	return w
}
