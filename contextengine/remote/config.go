package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/engined/engined/contextengine"
)

// Config says where an engine is and how much it is trusted. Only URL is
// required.
type Config struct {
	// URL is the base of the engine's routes: "http://host:port" or with a path.
	URL string
	// Token, if any, is sent as "Authorization: Bearer".
	Token string
	// Header is sent with every call. It wins over what the client sets.
	Header http.Header
	// Info describes the engine; nil asks GET /v1/engine, once, in Connect.
	Info *contextengine.Info

	// Timeout bounds every call but Compact, body included. Default 10 s.
	Timeout time.Duration
	// CompactTimeout bounds Compact. Default 180 s, the host's own limit.
	CompactTimeout time.Duration
	// MaxAnswerBytes bounds the answer of Assemble, default 64 MiB. Answers that
	// carry no window are bounded by 8 MiB as well.
	MaxAnswerBytes int64
	// MaxMessages bounds the messages of a window. Default 100,000.
	MaxMessages int
	// MaxConns bounds the connections, thereby the calls at one time. Default 64.
	MaxConns int
	// Retries is how often a call is made again after a failed connection; only
	// calls that cannot have been seen, or that are harmless twice, are. Default
	// 2; negative for none.
	Retries int
	// Transport replaces the client's own, for tests and proxies. The limits on
	// time and size hold with any.
	Transport http.RoundTripper
}

const (
	maxSmallAnswer = 8 << 20
	maxProblem     = 64 << 10
	maxHeaderBytes = 64 << 10
	retryPause     = 50 * time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.CompactTimeout <= 0 {
		c.CompactTimeout = 180 * time.Second
	}
	if c.MaxAnswerBytes <= 0 {
		c.MaxAnswerBytes = 64 << 20
	}
	if c.MaxMessages <= 0 {
		c.MaxMessages = 100_000
	}
	if c.MaxConns <= 0 {
		c.MaxConns = 64
	}
	if c.Retries == 0 {
		c.Retries = 2
	}
	return c
}

// Client is an engine in another process. Its methods may be called at the same
// time; it holds nothing but connections. It has every optional method: what the
// other side lacks is an error that is errors.ErrUnsupported.
type Client struct {
	cfg  Config
	base string
	http *http.Client
	info contextengine.Info
	// calls are what the engine says it serves; nil for "unknown".
	calls map[string]bool
}

// New makes a client without asking the engine anything. cfg.Info is required.
func New(cfg Config) (*Client, error) {
	if cfg.Info == nil {
		return nil, errors.New("remote engine: New needs Config.Info; Connect asks the engine for it")
	}
	return newClient(cfg)
}

// Connect makes a client and asks the engine who it is, unless cfg.Info says so.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	c, err := newClient(cfg)
	if err != nil || cfg.Info != nil {
		return c, err
	}
	var d description
	if err := c.get(ctx, opInfo, infoPath, &d); err != nil {
		c.Close()
		return nil, err
	}
	if strings.TrimSpace(d.ID) == "" || strings.TrimSpace(d.Name) == "" {
		c.Close()
		return nil, &ProtocolError{Op: opInfo, Reason: "id and name must not be blank"}
	}
	c.info = d.Info
	if d.Calls != nil {
		c.calls = map[string]bool{}
		for _, call := range d.Calls {
			c.calls[call] = true
		}
	}
	return c, nil
}

func newClient(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("remote engine: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("remote engine: %q is not an http(s) URL without query", u.Redacted())
	}
	cfg = cfg.withDefaults()
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.MaxConns)
	}
	c := &Client{cfg: cfg, base: strings.TrimRight(cfg.URL, "/"), http: &http.Client{
		Transport: cfg.Transport,
		// A redirected call would carry messages and token to a place that the
		// configuration does not name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if cfg.Info != nil {
		c.info = *cfg.Info
	}
	return c, nil
}

func newTransport(conns int) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    min(conns, 16),
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
		// A compressed answer could be small on the wire and huge in memory.
		DisableCompression: true,
	}
}

// Info describes the engine, as it said when the client connected.
func (c *Client) Info() contextengine.Info { return c.info }

// URL is the engine's base.
func (c *Client) URL() string { return c.base }

// Close gives idle connections up. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Dispose is Close, for hosts that dispose of engines.
func (c *Client) Dispose(context.Context) error {
	c.Close()
	return nil
}
