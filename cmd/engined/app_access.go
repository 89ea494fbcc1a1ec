package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/audit"
)

// defaultTenant is who a node without keys serves.
const defaultTenant = "default"

// open tells whether requests without a key are served. Outside dev that is
// only so where it was asked for.
func (a *App) open() bool {
	return len(a.cfg.Keys) == 0 && (a.cfg.Insecure || a.roles.Private && !a.cfg.Exposed())
}

// openKeys prepares to tell callers apart.
func (a *App) openKeys(ctx context.Context) error {
	if !a.roles.Node {
		return nil
	}
	opts := access.Options{Static: map[string]access.Principal{}, Log: a.log}
	for _, k := range a.cfg.StaticKeys() {
		scopes, err := access.ParseScopes(k.Scopes)
		if err == nil {
			err = access.CheckTenant(k.Tenant)
		}
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		opts.Static[k.Token] = access.Principal{Tenant: k.Tenant, Scopes: scopes}
	}
	if a.open() {
		opts.Open = &access.Principal{Tenant: defaultTenant, Key: "none", Scopes: access.Admin}
		if a.cfg.Exposed() {
			a.log.Warn("--insecure: everybody who reaches this node is admin of the tenant default", "listen", a.cfg.Listen)
		}
	} else if len(opts.Static) == 0 {
		some, err := a.store.HasKeys(ctx)
		if err != nil {
			return err
		}
		if !some {
			a.log.Warn("there is no API key yet, so every call is refused; make one", "command", a.keyCommand())
		}
	}
	a.keys = access.NewKeyring(a.store, opts)
	a.onClose("keys", a.keys.Close)
	a.limiter = access.NewLimiter(access.Quota{
		Rate: a.cfg.TenantRate, Concurrency: a.tenantShare(), Sessions: int64(a.cfg.TenantSessions), StorageBytes: a.cfg.TenantStorage,
	}, a.store, time.Now, a.log)
	a.onClose("limiter", func(context.Context) error { a.limiter.Close(); return nil })
	if a.cfg.Audit {
		recorder := audit.NewRecorder(a.store, a.cfg.AuditRetention, a.log)
		a.audit = recorder.Add
		a.onClose("audit", recorder.Close)
		a.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "engined_audit_dropped_total", Help: "Audit entries that were lost while Postgres took none.",
		}, func() float64 { return float64(recorder.Dropped()) }))
	}
	return nil
}

// tenantShare is how many calls of one tenant a node answers at one time. Where
// none is set and there are several tenants it is three quarters of all: whoever
// has a key and sends bodies slowly must leave room for others.
func (a *App) tenantShare() int64 {
	switch {
	case a.cfg.TenantConcurrency > 0:
		return int64(a.cfg.TenantConcurrency)
	case a.open():
		return 0
	default:
		return int64(a.cfg.MaxCalls * 3 / 4)
	}
}

// keyCommand makes the first key, which opens everything.
func (a *App) keyCommand() string {
	command := "engined keys create --tenant default --scope admin"
	if a.dataDir != "" && a.postgres != nil {
		command += " --data " + a.dataDir
	}
	return command
}
