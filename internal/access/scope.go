package access

import (
	"fmt"
	"strings"
)

// Scopes are what a key may be used for, as a set.
type Scopes uint8

// The scopes. What each may call is the API's table.
const (
	// Gateway is for hosts: they write turns and ask for windows.
	Gateway Scopes = 1 << iota
	// Worker is for programs that compact and maintain sessions.
	Worker
	// Analyst is for reading everything of a tenant, and changing nothing.
	Analyst
	// Admin includes all the others.
	Admin
)

// names of the scopes, in the order of their bits. They are stored.
var names = []string{"gateway", "worker", "analyst", "admin"}

// ParseScopes reads a set of scopes; there must be one at least.
func ParseScopes(words []string) (Scopes, error) {
	var set Scopes
next:
	for _, word := range words {
		for i, name := range names {
			if word == name {
				set |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("%q is no scope; there are %s", word, strings.Join(names, ", "))
	}
	if set == 0 {
		return 0, fmt.Errorf("a scope is missing: one of %s", strings.Join(names, ", "))
	}
	return set, nil
}

// Names are the scopes of the set.
func (s Scopes) Names() []string {
	var out []string
	for i, name := range names {
		if s&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Allow tells whether a holder of s may do what any of the scopes in of may.
func (s Scopes) Allow(of Scopes) bool { return s&(of|Admin) != 0 }

// Principal is who a request comes from.
type Principal struct {
	// Tenant is whose data the request is about.
	Tenant string
	// Key names the key without telling it.
	Key    string
	Scopes Scopes
}
