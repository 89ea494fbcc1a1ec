package config

import (
	"errors"
	"fmt"
	"strings"
)

// StaticKey is an API key of the settings.
type StaticKey struct {
	Token, Tenant string
	// Scopes are words; admin where the entry says none.
	Scopes []string
}

var scopeWords = []string{"gateway", "worker", "analyst", "admin"}

// StaticKeys are the entries of keys, in their order.
func (c Config) StaticKeys() []StaticKey {
	out := make([]StaticKey, len(c.Keys))
	for i, entry := range c.Keys {
		out[i], _ = staticKey(entry) // checked when it was set
	}
	return out
}

// staticKey reads TOKEN=TENANT or TOKEN=TENANT=SCOPE+SCOPE. What it says of an
// entry does not repeat it: it holds a secret.
func staticKey(entry string) (StaticKey, error) {
	token, rest, ok := strings.Cut(entry, "=")
	tenant, scopes, scoped := strings.Cut(rest, "=")
	if !ok || token == "" || tenant == "" {
		return StaticKey{}, errors.New("an entry is not TOKEN=TENANT")
	}
	k := StaticKey{Token: token, Tenant: tenant, Scopes: []string{"admin"}}
	if !scoped {
		return k, nil
	}
	k.Scopes = strings.Split(scopes, "+")
	for _, word := range k.Scopes {
		known := false
		for _, w := range scopeWords {
			known = known || w == word
		}
		if !known {
			return StaticKey{}, fmt.Errorf("an entry of tenant %q has a scope that is none of %s", tenant, strings.Join(scopeWords, ", "))
		}
	}
	return k, nil
}
