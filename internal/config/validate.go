package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// validate checks what no single value can tell.
func (c Config) validate() error {
	var errs []error
	add := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	_, _, err := net.SplitHostPort(c.Listen)
	add(err == nil, "listen: %q is not host:port", c.Listen)
	_, _, err = net.SplitHostPort(c.HealthListen)
	add(c.HealthListen == "" || err == nil, "health-listen: %q is not host:port", c.HealthListen)
	// A target that is not below the threshold is lowered with it, and the tail too.
	add(c.CompactionTarget >= c.CompactionThreshold || c.CompactionTail <= 0.9*c.CompactionTarget,
		"compaction-tail: %g leaves no room for summaries within compaction-target %g; at most 9 tenths of it", c.CompactionTail, c.CompactionTarget)
	add(c.MaxMessageBytes <= c.MaxBatchBytes, "max-message-bytes: larger than max-batch-bytes")
	add((c.TLSCert == "") == (c.TLSKey == ""), "tls-cert and tls-key: one needs the other")
	add((c.NATSCert == "") == (c.NATSKey == ""), "nats-cert and nats-key: one needs the other")
	u, err := url.Parse(c.URL)
	add(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", "url: %q is not an http or https URL", c.URL)
	errs = append(errs, c.checkSummarizers()...)
	seen := make(map[string]bool)
	for _, entry := range c.Keys {
		token, _, _ := strings.Cut(entry, "=")
		add(!seen[token], "keys: one token stands there twice")
		seen[token] = true
	}
	if c.HookURL != "" {
		u, err := url.Parse(c.HookURL)
		// It may hold a password: it is not repeated.
		add(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", "hook-url: not an http or https URL")
	}
	for _, e := range c.RemoteEngines() {
		add(e.Owner != "core", "engines: the owner core is engined's own")
	}
	return errors.Join(errs...)
}

// EngineTimeouts maps operations to the time that an engine has for them.
func (c Config) EngineTimeouts() map[string]time.Duration {
	out := make(map[string]time.Duration, len(c.EngineTimeoutList))
	for _, entry := range c.EngineTimeoutList {
		op, text, _ := strings.Cut(entry, "=")
		if d, err := time.ParseDuration(text); err == nil {
			out[op] = d
		}
	}
	return out
}

// Exposed reports whether the listen address is reachable from elsewhere.
func (c Config) Exposed() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return true
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}
