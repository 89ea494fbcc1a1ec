package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/audit"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/hooks"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/summarizers"
)

// Roles says which parts of engined an App runs.
type Roles struct {
	// Node answers HTTP; Worker compacts.
	Node, Worker bool
	// Private runs Postgres (unless a database URL is set) and NATS here.
	Private bool
	// Fast gives up Postgres's durability, for data that nobody keeps.
	Fast bool
}

// App is the whole program in one value: Start it, wait for Done, Close it.
type App struct {
	cfg   config.Config
	roles Roles
	log   *slog.Logger

	postgres *devpg.Cluster
	nats     *bus.Embedded
	store    *store.Store
	bus      *bus.Bus
	engine   *engine.Lossless
	engines  *engine.Registry
	slot     *engine.Guard
	upkeep   *engine.Upkeep
	hooks    *hooks.Hooks
	keys     *access.Keyring // of a node, and so are limiter and audit
	limiter  *access.Limiter
	audit    func(audit.Entry)
	registry *prometheus.Registry
	addr     net.Addr
	dataDir  string // "" without private parts

	search      *retrieval.Searcher
	summarizers *summarizers.Set

	ends []end
	fail chan error // a part that ended by itself
}

// end stops one part of the App.
type end struct {
	name string
	stop func(ctx context.Context) error
}

// NewApp makes an App that does nothing until Start.
func NewApp(cfg config.Config, roles Roles, log *slog.Logger) *App {
	return &App{cfg: cfg, roles: roles, log: log, registry: prometheus.NewRegistry(), fail: make(chan error, 4)}
}

// Start returns once the App serves. On an error nothing of it is left running.
// ctx bounds the start only.
func (a *App) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	// The port first: that it is taken is told in no time.
	listener, err := a.listen(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{a.startPrivate, a.openStore, a.openKeys, a.openBus, a.makeEngines, a.startWorker} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return a.serveHTTP(listener)
}

// Addr is where the App answers HTTP; nil when it does not.
func (a *App) Addr() net.Addr { return a.addr }

// URL is where a client on this machine reaches the App.
func (a *App) URL() string {
	host, port, err := net.SplitHostPort(a.addr.String())
	if err != nil {
		return "http://" + a.addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if a.cfg.TLSCert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// Wait returns when ctx ends (nil) or a part of the App fails.
func (a *App) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fail:
		return err
	}
}

// Close ends the parts in the reverse order of their start, each within what
// is left of the grace. It may be called more than once.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.ShutdownGrace)
	defer cancel()
	var errs []error
	for _, e := range slices.Backward(a.ends) {
		began := time.Now()
		if err := e.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", e.name, err))
		}
		a.log.Debug("stopped", "part", e.name, "took", time.Since(began).Round(time.Millisecond))
	}
	a.ends = nil
	return errors.Join(errs...)
}

// onClose registers how a part that has started is stopped.
func (a *App) onClose(name string, stop func(ctx context.Context) error) {
	a.ends = append(a.ends, end{name, stop})
}

// failed notes that a part ended by itself.
func (a *App) failed(err error) {
	select {
	case a.fail <- err:
	default: // an earlier failure is reported already
	}
}

// run is the life of a command that serves: start, say so, wait, end.
func (c *cli) runApp(ctx context.Context, a *App, ready func() error) error {
	if err := a.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		return err
	}
	err := ready()
	if err == nil {
		err = a.Wait(ctx)
	}
	if ctx.Err() != nil {
		a.log.Info("stopping; a second signal ends at once")
	}
	return errors.Join(err, a.Close())
}

// serving is an http.Server whose end is part of the App's.
func (a *App) serving(name string, server *http.Server, listener net.Listener) {
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.failed(fmt.Errorf("%s: %w", name, err))
		}
	}()
	a.onClose(name, func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			a.log.Warn("calls were cut off at the end of the grace", "part", name)
			err = server.Close()
		}
		return err
	})
}
