package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/engined/engined/internal/access"
)

// ErrUnauthorized: the request carries no key or an unknown one.
var ErrUnauthorized = access.ErrUnauthorized

// ErrForbidden: the key does not allow the call.
var ErrForbidden = errors.New("the API key does not allow this call")

// Auth tells who a request comes from; see ErrUnauthorized and ErrForbidden.
type Auth = func(*http.Request) (access.Principal, error)

// OpenAuth lets every request in as one tenant's admin. It is for a node that
// only its own machine can reach.
func OpenAuth(tenant string) Auth {
	return func(*http.Request) (access.Principal, error) {
		return access.Principal{Tenant: tenant, Scopes: access.Admin}, nil
	}
}

// tenantHeader is what a host says of its own tenant when this node is its remote
// engine; see package remote.
const tenantHeader = "Engined-Tenant"

// checkTenant refuses a host that speaks for another tenant than its key's: with
// one key for several tenants, their sessions would become one.
func (c *call) checkTenant() error {
	said := c.r.Header.Get(tenantHeader)
	if said == "" {
		return nil
	}
	if name, err := url.QueryUnescape(said); err != nil || name != c.tenant {
		return kindForbidden.problem("the key is another tenant's than " + tenantHeader + " says")
	}
	return nil
}

// RingAuth asks a keyring who holds the request's token.
func RingAuth(who func(ctx context.Context, token string) (access.Principal, error)) Auth {
	return func(r *http.Request) (access.Principal, error) {
		return who(r.Context(), bearer(r.Header.Get("Authorization")))
	}
}

// bearer is the token of an Authorization header, "" where there is none.
func bearer(header string) string {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(header[len(scheme):])
}

// admit names the caller, and refuses what its key does not allow.
func (c *call) admit() error {
	// Whoever is refused here waits as long as any call may.
	ctx, cancel := context.WithTimeout(c.r.Context(), c.api.cfg.Timeout)
	defer cancel()
	who, err := c.api.cfg.Auth(c.r.WithContext(ctx))
	if err != nil {
		return err
	}
	c.who, c.tenant = who, who.Tenant
	if err := c.checkTenant(); err != nil {
		return err
	}
	if !who.Scopes.Allow(c.op.scopes) {
		return kindForbidden.problem("the API key's scope is " + strings.Join(who.Scopes.Names(), " and ") +
			"; this call is for " + strings.Join((c.op.scopes|access.Admin).Names(), ", "))
	}
	return nil
}

// expelled tells that the caller's key has ceased to count since the call began.
func (c *call) expelled() bool {
	ctx, cancel := context.WithTimeout(c.r.Context(), c.api.cfg.Timeout)
	defer cancel()
	_, err := c.api.cfg.Auth(c.r.WithContext(ctx))
	return errors.Is(err, ErrUnauthorized)
}
