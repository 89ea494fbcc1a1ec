package api

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// ErrUnauthorized: the request carries no key or an unknown one.
var ErrUnauthorized = errors.New("a valid API key is required")

// ErrForbidden: the key does not allow the call.
var ErrForbidden = errors.New("the API key does not allow this call")

// OpenAuth lets every request in as one tenant. It is for a node that only
// its own machine can reach.
func OpenAuth(tenant string) func(*http.Request) (string, error) {
	return func(*http.Request) (string, error) { return tenant, nil }
}

// KeyAuth knows a fixed set of bearer tokens and the tenant of each. Tokens are
// looked up by their hash, so the time it takes tells nothing about them.
func KeyAuth(keys map[string]string) func(*http.Request) (string, error) {
	tenants := make(map[[sha256.Size]byte]string, len(keys))
	for token, tenant := range keys {
		tenants[sha256.Sum256([]byte(token))] = tenant
	}
	return func(r *http.Request) (string, error) {
		token, ok := bearer(r.Header.Get("Authorization"))
		if !ok {
			return "", ErrUnauthorized
		}
		tenant, ok := tenants[sha256.Sum256([]byte(token))]
		if !ok {
			return "", ErrUnauthorized
		}
		return tenant, nil
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

func bearer(header string) (token string, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	token = strings.TrimSpace(header[len(scheme):])
	return token, token != ""
}
