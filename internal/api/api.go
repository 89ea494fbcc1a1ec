package api

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// API serves the HTTP API. It is an http.Handler.
type API struct {
	cfg         Config
	log         *slog.Logger
	mux         *http.ServeMux
	metrics     *metrics
	crossOrigin *http.CrossOriginProtection
	streams     streamCounts
	places      chan struct{} // of calls at one time; nil without a limit
	idPrefix    string
	ids         atomic.Uint64
	scrape      http.Handler
	lost        http.Handler
	draining    chan struct{}
	drainOnce   sync.Once
}

// New builds the handler.
func New(cfg Config) (*API, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &API{
		cfg: cfg, log: cfg.Logger.With("component", "api"), mux: http.NewServeMux(),
		crossOrigin: http.NewCrossOriginProtection(), idPrefix: rand.Text()[:8] + "-",
		scrape:   promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
		draining: make(chan struct{}),
	}
	if cfg.MaxCalls > 0 {
		a.places = make(chan struct{}, cfg.MaxCalls)
	}
	if a.metrics, err = newMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	ops := operations()
	doc, err := document(ops, cfg.Limits)
	if err != nil {
		return nil, err
	}
	ops = append(ops, a.ownPages(doc)...)
	a.route(ops)
	return a, nil
}

// Drain makes the node not ready and ends its streams with a hint to come back
// elsewhere. Calls go on. It may be called more than once.
func (a *API) Drain() { a.drainOnce.Do(func() { close(a.draining) }) }

// Server is an http.Server with the timeouts that this handler needs: the body's
// is set per request, and streams outlive any WriteTimeout.
func (a *API) Server() *http.Server {
	s := &http.Server{
		Handler: a, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	s.RegisterOnShutdown(a.Drain)
	return s
}

// route registers one handler a path, so that the wrong method is an answer of
// ours, and one for everything that is no path of ours.
func (a *API) route(ops []*operation) {
	paths := make(map[string]methods)
	for _, op := range ops {
		op.observe = a.metrics.observer(op.path, op.method)
		if paths[op.path] == nil {
			paths[op.path] = methods{}
		}
		paths[op.path][op.method] = op
	}
	for path, m := range paths {
		a.mux.Handle(path, a.dispatch(path, m))
	}
	lost := &operation{path: "other", public: true, serve: func(*call) error {
		return kindNotFound.problem("no such path; a session key in a path is percent-encoded, / as %2F")
	}}
	lost.observe = a.metrics.observer(lost.path, "any")
	a.lost = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.run(lost, w, r) })
	a.mux.Handle("/", a.lost)
	if a.cfg.Console != nil {
		a.mux.Handle("/console/", a.console())
	}
}

type methods map[string]*operation

func (m methods) allow() string {
	var names []string
	for _, name := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if m[name] != nil {
			names = append(names, name)
		}
		if name == http.MethodGet && m[name] != nil {
			names = append(names, http.MethodHead)
		}
	}
	return strings.Join(append(names, http.MethodOptions), ", ")
}

func (a *API) dispatch(path string, m methods) http.Handler {
	allow := m.allow()
	other := &operation{path: path, public: true, serve: func(c *call) error {
		c.w.Header().Set("Allow", allow)
		if c.r.Method == http.MethodOptions {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return kindMethod.problem("allowed here: " + allow)
	}}
	other.observe = a.metrics.observer(path, "other")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		op := m[method]
		if op == nil {
			op = other
		}
		a.run(op, w, r)
	})
}

func (a *API) timeout(op *operation) time.Duration {
	switch op.kind {
	case stream:
		return 0
	case compaction:
		return a.cfg.CompactTimeout
	}
	return a.cfg.Timeout
}

// console serves the web console. It goes the way of every call, so it is held
// to the same Host check, and has headers of its own on top.
func (a *API) console() http.Handler {
	op := &operation{path: "/console/", public: true, serve: func(c *call) error {
		a.cfg.Console.ServeHTTP(&c.w, c.r)
		return nil
	}}
	op.observe = a.metrics.observer(op.path, "any")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.run(op, w, r) })
}

var pagePolicy = []string{"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"}
