package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configures Connect. Exactly one of URL and InProcess is set.
type Options struct {
	// URL of one server or several, separated by commas.
	URL string
	// InProcess is a server of this process.
	InProcess *Embedded
	// Name of the connection, seen in the server's monitoring.
	Name string
	// Replicas of the streams: 1 (the default) on a single server, 3 in a
	// cluster.
	Replicas int
	// Observe creates and changes nothing on the server: for a command that
	// only looks. Missing streams are then what Healthy tells.
	Observe bool
	// CredsFile authenticates by NATS credentials; CAFile, CertFile and
	// KeyFile by TLS. Empty: not used.
	CredsFile, CAFile, CertFile, KeyFile string
	// PublishTimeout bounds one publish, default 2 s.
	PublishTimeout time.Duration
	// ReconnectWait is the pause between tries to connect, default 500 ms.
	ReconnectWait time.Duration
	Log           *slog.Logger
}

// firstLook is how long Connect and ConsumeJobs wait for the server before
// they leave the rest to the background.
const firstLook = 2 * time.Second

// Bus is one connection to NATS. Its methods may be called at the same time.
type Bus struct {
	opts   Options
	log    *slog.Logger
	nc     *nats.Conn
	js     jetstream.JetStream
	link   *link
	topo   *topology
	count  counters
	cancel context.CancelFunc
	kept   chan struct{} // closed when the keeper has ended
	gone   chan struct{} // closed when the connection is

	mu      sync.Mutex
	closed  bool
	members []member // in the order they began
}

// member is what Close ends before the connection.
type member interface {
	Stop(ctx context.Context) error
}

// withoutURL is the error of an address that can't be read without the address:
// it may hold a password.
func withoutURL(err error) error {
	if bad, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the URL of a server: %w", bad.Err)
	}
	return err
}

// Connect opens the connection and returns, whether NATS is up or not; from
// then on it reconnects for ever and keeps the streams in existence. An error
// is one of configuration. ctx bounds the call only.
func Connect(ctx context.Context, opts Options) (*Bus, error) {
	if (opts.URL == "") == (opts.InProcess == nil) {
		return nil, errors.New("bus: exactly one of URL and InProcess must be set")
	}
	opts.Replicas = cmp.Or(opts.Replicas, 1)
	opts.PublishTimeout = cmp.Or(opts.PublishTimeout, 2*time.Second)
	opts.ReconnectWait = cmp.Or(opts.ReconnectWait, 500*time.Millisecond)
	opts.Name = cmp.Or(opts.Name, "engined")
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	b := &Bus{
		opts: opts,
		log:  opts.Log.With("component", "bus"),
		link: newLink(),
		kept: make(chan struct{}),
		gone: make(chan struct{}),
	}
	natsOpts, err := b.natsOptions()
	if err != nil {
		return nil, err
	}
	if b.nc, err = nats.Connect(opts.URL, natsOpts...); err != nil {
		return nil, fmt.Errorf("bus: connect: %w", withoutURL(err))
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("bus: jetstream: %w", err)
	}
	b.topo = newTopology(b.js, opts.Replicas, func() uint64 { return b.nc.Stats().Reconnects })
	b.topo.observe = opts.Observe
	keepCtx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.keep(keepCtx)
	if b.nc.IsConnected() {
		look, done := context.WithTimeout(ctx, firstLook)
		defer done()
		if b.link.waitUp(look) == nil {
			_, _ = b.topo.current(look) // the keeper goes on and reports
		}
	} else {
		var why []any
		if opts.URL != "" {
			why = append(why, "servers", Hosts(opts.URL))
		}
		if err := b.nc.LastError(); err != nil {
			why = append(why, "error", withoutURL(err))
		}
		b.log.Warn("NATS does not answer yet; compactions wait until it does", why...)
	}
	return b, nil
}

func (b *Bus) natsOptions() ([]nats.Option, error) {
	o := b.opts
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.Timeout(2 * time.Second),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// By default the second refusal in a row ends the connection for good.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(o.ReconnectWait),
		nats.ReconnectJitter(o.ReconnectWait, 2*o.ReconnectWait),
		nats.PingInterval(15 * time.Second),
		// Nothing is sent late: a publish that failed has failed, and an ack
		// must not reach a stream that was made anew meanwhile.
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(b.connected),
		nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.link.set(false, err)
			if err == nil && b.closing() {
				b.log.Debug("NATS connection closed")
				return
			}
			b.log.Warn("NATS connection lost", "error", err)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.link.note(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("NATS reported an error", "error", err)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(b.gone) }),
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	}
	if o.CredsFile != "" {
		// nats.go reads it at each connect; a wrong path is told now.
		if _, err := os.Stat(o.CredsFile); err != nil {
			return nil, fmt.Errorf("bus: credentials: %w", err)
		}
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	}
	if o.CAFile != "" {
		opts = append(opts, nats.RootCAs(o.CAFile))
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("bus: a client certificate needs its key, and a key its certificate")
	}
	if o.CertFile != "" {
		opts = append(opts, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return opts, nil
}

// connected may run before Connect has set b.nc.
func (b *Bus) connected(nc *nats.Conn) {
	b.link.set(true, nil)
	b.log.Info("NATS connected", "server", nc.ConnectedUrlRedacted())
}

// Healthy reports whether the bus can carry messages now, and in words why
// not. A node that is not healthy still serves turns.
func (b *Bus) Healthy() (ok bool, detail string) {
	switch up, err := b.link.reason(); {
	case !up && err != nil:
		return false, "disconnected: " + err.Error()
	case !up:
		return false, "not connected yet"
	}
	if err := b.topo.problem(); err != nil {
		return false, "connected, streams missing: " + err.Error()
	}
	if b.topo.last().seen == 0 {
		return false, "connected, streams not looked at yet"
	}
	return true, "connected"
}

// Up reports whether there is a connection, with its streams or without.
func (b *Bus) Up() bool {
	up, _ := b.link.reason()
	return up
}

// keep creates the streams each time the connection comes up.
func (b *Bus) keep(ctx context.Context) {
	defer close(b.kept)
	for b.link.waitUp(ctx) == nil {
		state, _ := b.link.state()
		wait := newBackoff(100*time.Millisecond, 15*time.Second)
		for n := 1; state.Err() == nil && ctx.Err() == nil; n++ {
			bound, cancel := bind(ctx, state)
			_, err := b.topo.current(bound)
			if err == nil {
				<-bound.Done()
			} else if bound.Err() == nil {
				b.log.Warn("cannot create streams", "error", err)
				wait.sleep(bound, n)
			}
			cancel()
		}
	}
}

// join registers m to be stopped by Close.
func (b *Bus) join(m member) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.members = append(b.members, m)
	return nil
}

// closing tells whether Close has begun.
func (b *Bus) closing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// leave forgets a member that has ended.
func (b *Bus) leave(m member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members = slices.DeleteFunc(b.members, func(o member) bool { return o == m })
}

// Close stops what was started on the bus, newest first: consumers finish
// their jobs, publishers send what they hold. Then it waits until the server
// has what was sent and ends the connection. ctx bounds the waiting; at its end
// the rest is cut off. A second call returns nil.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	members := slices.Clone(b.members)
	done := b.closed
	b.closed, b.members = true, nil
	b.mu.Unlock()
	if done {
		return nil
	}
	var errs []error
	for _, m := range slices.Backward(members) {
		errs = append(errs, m.Stop(ctx))
	}
	b.cancel()
	<-b.kept
	if _, up := b.link.state(); up {
		// Detached: answers of jobs cut off by ctx are worth a moment more.
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if err := b.nc.FlushWithContext(flush); err != nil && b.nc.IsConnected() {
			errs = append(errs, fmt.Errorf("bus: flush: %w", err))
		}
		cancel()
	}
	b.nc.Close()
	<-b.gone
	return errors.Join(errs...)
}
