package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	embeddedReady    = 10 * time.Second
	embeddedMaxStore = 4 << 30
	embeddedMaxMem   = 64 << 20
)

// EmbeddedOptions configures StartEmbedded.
type EmbeddedOptions struct {
	// StoreDir holds the streams; made with mode 0700. Two servers must not
	// share one: the caller holds a lock on the directory around it.
	StoreDir string
	// Listen is a loopback host:port for other processes (port 0 picks one
	// and keeps it over restarts). Empty: no listener, clients of this process
	// only. The server has no authentication, so other addresses are refused.
	Listen string
	// MaxStore bounds what the streams take on disk, in bytes; 4 GiB by default.
	// Beyond it nothing can be published.
	MaxStore int64
	Log      *slog.Logger
}

// Embedded is a NATS server with JetStream inside this process, for dev, tests
// and a single node. Its clients reconnect over Stop and Start, whether they
// came in process or over the listener.
type Embedded struct {
	opts EmbeddedOptions
	host string

	mu   sync.Mutex // held over a whole Start, Stop or Wipe
	port int

	srvMu sync.Mutex
	srv   *server.Server // nil while stopped
}

// StartEmbedded starts a server and waits until it serves. ctx bounds the
// start only.
func StartEmbedded(ctx context.Context, opts EmbeddedOptions) (*Embedded, error) {
	if opts.StoreDir == "" {
		return nil, errors.New("bus: embedded server needs a store directory")
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.MaxStore = cmp.Or(opts.MaxStore, embeddedMaxStore)
	e := &Embedded{opts: opts}
	if opts.Listen != "" {
		host, port, err := net.SplitHostPort(opts.Listen)
		if err != nil {
			return nil, fmt.Errorf("bus: embedded listen address: %w", err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("bus: embedded server listens on loopback only, not on %q", host)
		}
		if e.port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("bus: embedded listen port: %w", err)
		}
		if e.port == 0 {
			e.port = server.RANDOM_PORT
		}
		e.host = host
	}
	if err := e.Start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Start starts a stopped server on the same store and port. It is an error
// when the server runs.
func (e *Embedded) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server() != nil {
		return errors.New("bus: embedded server is running")
	}
	if err := os.MkdirAll(e.opts.StoreDir, 0o700); err != nil {
		return fmt.Errorf("bus: embedded store: %w", err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName:         "engined-embedded",
		Host:               e.host,
		Port:               e.port,
		DontListen:         e.opts.Listen == "",
		JetStream:          true,
		StoreDir:           e.opts.StoreDir,
		JetStreamMaxStore:  e.opts.MaxStore,
		JetStreamMaxMemory: embeddedMaxMem,
		NoSigs:             true, // or the server takes the process's SIGINT
	})
	if err != nil {
		return fmt.Errorf("bus: embedded server: %w", err)
	}
	log := &serverLog{log: e.opts.Log.With("component", "nats-server")}
	srv.SetLogger(log, false, false)
	go srv.Start()

	ready := embeddedReady
	if deadline, ok := ctx.Deadline(); ok {
		ready = min(ready, time.Until(deadline))
	}
	if !srv.ReadyForConnections(ready) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		srv.WaitForShutdown()
		return fmt.Errorf("bus: embedded server did not start: %w", log.cause())
	}
	if addr, ok := srv.Addr().(*net.TCPAddr); ok {
		e.port = addr.Port
	}
	e.setServer(srv)
	return nil
}

// Stop shuts the server down, if it runs, and waits for its end or ctx.
func (e *Embedded) Stop(ctx context.Context) error {
	e.mu.Lock()
	srv := e.server()
	if srv == nil {
		e.mu.Unlock()
		return nil
	}
	e.setServer(nil)
	done := make(chan struct{})
	go func() {
		defer e.mu.Unlock()
		defer close(done)
		srv.Shutdown()
		srv.WaitForShutdown()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("bus: embedded server still stopping: %w", context.Cause(ctx))
	}
}

// Wipe deletes every stream and consumer of a stopped server, as a lost disk
// would.
func (e *Embedded) Wipe() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server() != nil {
		return errors.New("bus: cannot wipe a running server")
	}
	if err := os.RemoveAll(filepath.Join(e.opts.StoreDir, server.JetStreamStoreDir)); err != nil {
		return fmt.Errorf("bus: wipe: %w", err)
	}
	return nil
}

// URL is where other processes connect; empty without a listener.
func (e *Embedded) URL() string {
	if e.opts.Listen == "" {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return "nats://" + net.JoinHostPort(e.host, strconv.Itoa(e.port))
}

// InProcessConn opens a client connection to whatever server runs now, so that
// a client's reconnect finds the next one.
func (e *Embedded) InProcessConn() (net.Conn, error) {
	srv := e.server()
	if srv == nil {
		return nil, errors.New("bus: embedded server is stopped")
	}
	return srv.InProcessConn()
}

func (e *Embedded) server() *server.Server {
	e.srvMu.Lock()
	defer e.srvMu.Unlock()
	return e.srv
}

func (e *Embedded) setServer(srv *server.Server) {
	e.srvMu.Lock()
	defer e.srvMu.Unlock()
	e.srv = srv
}
