package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/console"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/summarizers"
)

// listen binds the port of a node, or of a worker's health.
func (a *App) listen(ctx context.Context) (net.Listener, error) {
	address := a.cfg.Listen
	if !a.roles.Node {
		address = a.cfg.HealthListen
	}
	if address == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is taken, perhaps by another engined; stop it or choose another with --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a.addr = listener.Addr()
	// Serving takes it over; until then it is closed here.
	a.onClose("listener", func(context.Context) error {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return listener, nil
}

func (a *App) serveHTTP(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	a.search = retrieval.NewSearcher(a.store, a.indexer()).AtOnce(searchesAtOnce(a.cfg))
	a.observe()
	if !a.roles.Node {
		a.serving("health", a.healthServer(), listener)
		return nil
	}
	host, _, _ := net.SplitHostPort(a.cfg.Listen) // it was listened on
	pages, err := a.consolePages()
	if err != nil {
		return err
	}
	handler, err := api.New(api.Config{
		Console: pages,
		// An exposed node without keys was asked for, and has names that only
		// its network knows.
		Local: a.open() && !a.cfg.Exposed(), LocalNames: []string{host},
		Engine: a.upkeep, Steps: a.slot, Branches: a.slot, Log: a.store, Search: a.search, Lives: a.store, Auth: api.RingAuth(a.keys.Who),
		Limiter: a.limiter, MaxCalls: a.cfg.MaxCalls, Audit: a.audit, AuditLog: a.store,
		Summarizers: a.summarizerRows, Summarization: a.store, SpendMicros: summarizers.Micros(a.cfg.TenantSpend),
		Ready: a.ready, Engines: a.engineList, ClearQuarantine: a.engines.ClearQuarantine,
		Timeout: a.cfg.RequestTimeout, CompactTimeout: a.cfg.CompactTimeout + compactMargin,
		Limits: api.Limits{
			MessageBytes: a.cfg.MaxMessageBytes, BatchBytes: a.cfg.MaxBatchBytes,
			BatchMessages: a.cfg.MaxBatchMessages, Nesting: a.cfg.MaxNesting,
		},
		Logger: a.log, Version: version(), Registry: a.registry,
	})
	if err != nil {
		return err
	}
	server := handler.Server()
	if server.TLSConfig, err = a.tlsConfig(); err != nil {
		return err
	}
	a.serving("HTTP", server, listener)
	return nil
}

// consolePages is the web console; nil where it is switched off.
func (a *App) consolePages() (http.Handler, error) {
	if !a.cfg.Console {
		return nil, nil
	}
	return console.Handler("/console/")
}

// searchesAtOnce leaves most of the connections to turns.
func searchesAtOnce(cfg config.Config) int {
	return cmp.Or(cfg.MaxSearches, max(1, cfg.DatabaseConns/4))
}

// compactMargin has the engine's own deadline pass before the call's.
const compactMargin = 5 * time.Second

// engineList shows the engines of this node and who serves.
func (a *App) engineList() api.EngineList {
	serving := engine.SlotID(a.cfg.Engine)
	out := api.EngineList{DefaultTokenBudget: a.cfg.DefaultTokenBudget}
	for _, q := range a.engines.Quarantines() {
		out.Quarantines = append(out.Quarantines, api.Quarantine{
			EngineID: q.EngineID, Operation: string(q.Operation), Reason: q.Reason, FailedAt: q.FailedAt, Owner: q.Owner,
		})
		if q.EngineID == serving {
			out.Serving = engine.LegacyID
		}
	}
	if out.Serving == "" {
		out.Serving = serving
	}
	for _, e := range a.engines.Engines() {
		row := api.EngineStatus{Info: e.Info, Owner: e.Owner}
		if e.Info.ID == serving {
			row.Slot = "contextEngine"
		}
		if e.Quarantine != nil {
			row.Quarantine = e.Quarantine.Reason
		}
		out.Engines = append(out.Engines, row)
	}
	return out
}

// ready is what /readyz shows. NATS away is told but no reason to take a node
// out: it serves turns, and what is owed waits in Postgres.
func (a *App) ready(ctx context.Context) []api.Check {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	postgres := api.Check{Name: "postgres", OK: true, Required: true}
	if err := a.store.Ping(ctx); err != nil {
		postgres.OK, postgres.Detail = false, "does not answer"
	}
	nats := api.Check{Name: "nats", OK: true}
	if ok, detail := a.bus.Healthy(); !ok {
		nats.OK, nats.Detail = false, detail+"; compactions wait"
	}
	checks := []api.Check{postgres, nats}
	if a.cfg.EncryptionKeysDSN == "" || a.store.Vault() == nil {
		return checks
	}
	// No reason either: plain sessions and those it has the keys of are served.
	keys := api.Check{Name: "session keys", OK: true}
	if _, err := a.store.Vault().Keeps(ctx, "", uuid.Nil); err != nil {
		keys.OK, keys.Detail = false, "their database does not answer; encrypted sessions that this node has no key of wait"
	}
	return append(checks, keys)
}

// healthServer serves what watches a worker that is no node.
func (a *App) healthServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // a client that is gone needs no answer
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer := api.Readiness{Ready: true, Checks: a.ready(r.Context())}
		for _, c := range answer.Checks {
			answer.Ready = answer.Ready && (c.OK || !c.Required)
		}
		if !answer.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(answer) // as above
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}
