package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// RemoteEngine is an engine in another process.
type RemoteEngine struct {
	ID, URL string
	// Owner is who offers it, "" for an owner made from the id.
	Owner string
	// TokenEnv names the variable of the environment that holds its bearer token.
	TokenEnv string
	// Timeout is the longest time for one of its calls but compact, 0 for
	// engine-timeout.
	Timeout time.Duration
}

// RemoteEngines are the entries of engines, in their order.
func (c Config) RemoteEngines() []RemoteEngine {
	out := make([]RemoteEngine, 0, len(c.Engines))
	for _, entry := range c.Engines {
		if e, err := parseEngine(entry); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// Token reads the engine's token; "" where it needs none.
func (e *RemoteEngine) Token(env func(string) (string, bool)) (string, error) {
	if e.TokenEnv == "" {
		return "", nil
	}
	token, ok := env(e.TokenEnv)
	if !ok || token == "" {
		return "", fmt.Errorf("the variable %s, which holds the token of engine %q, is not set", e.TokenEnv, e.ID)
	}
	return token, nil
}

func checkEngine(entry string) error {
	_, err := parseEngine(entry)
	return err
}

// parseEngine reads ID=URL;owner=NAME;token-env=VARIABLE;timeout=DURATION. The
// URL may hold a password: it is never repeated.
func parseEngine(entry string) (RemoteEngine, error) {
	id, rest, ok := strings.Cut(entry, "=")
	text, rest, _ := strings.Cut(rest, ";")
	e := RemoteEngine{ID: id, URL: text}
	u, err := url.Parse(text)
	if !ok || id == "" || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return e, fmt.Errorf("the entry of engine %q is not ID=URL, with an http or https URL", id)
	}
	for rest != "" {
		var member string
		member, rest, _ = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(member, "=")
		if err := e.set(name, value); err != nil {
			return e, fmt.Errorf("the entry of engine %q: %w", id, err)
		}
	}
	return e, nil
}

func (e *RemoteEngine) set(name, value string) error {
	switch name {
	case "owner":
		e.Owner = value
		if strings.TrimSpace(value) == "" {
			return errors.New("the owner is blank")
		}
	case "token-env":
		e.TokenEnv = value
		if value == "" || strings.ContainsAny(value, "= ") {
			return errors.New("token-env is not the name of a variable")
		}
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return errors.New("timeout is not a duration such as 5s")
		}
		e.Timeout = d
	default:
		return fmt.Errorf("%q is not owner, token-env or timeout", name)
	}
	return nil
}
