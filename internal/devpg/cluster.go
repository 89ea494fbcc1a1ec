package devpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Cluster is a running server. Its methods may be called concurrently.
type Cluster struct {
	opts   Options
	dir    dataDir
	bin    binaries
	socket string
	proc   *process
	log    *slog.Logger

	stopping sync.Once
	stopErr  error
}

// Start makes the cluster where there is none, starts its server and returns
// once it accepts connections. The error of a server that does not start ends
// with the tail of its log.
func Start(ctx context.Context, opts Options) (_ *Cluster, err error) {
	opts = opts.withDefaults()
	dir, err := openDataDir(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	c := &Cluster{opts: opts, dir: dir, log: opts.Log}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("postgres: %w", err), dir.release())
		}
	}()
	id, err := c.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if c.socket, err = socketDir(opts.SocketDir, dir.path, id); err != nil {
		return nil, err
	}
	if err := c.launch(ctx, id); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.socket))
	}
	return c, nil
}

// prepare finds the binaries, makes the cluster where there is none, and sees
// to it that nothing else works in it.
func (c *Cluster) prepare(ctx context.Context) (identity, error) {
	pgdata := c.dir.pgdata()
	id, err := serverIdentity(pgdata)
	if err != nil {
		return id, err
	}
	if c.bin, err = findBinaries(ctx, c.opts.BinDir, c.dir.major, id, c.log); err != nil {
		return id, fmt.Errorf("%s: %w", c.dir.path, err)
	}
	if c.dir.major == 0 {
		c.log.Info("creating a Postgres cluster", "dir", c.dir.path, "version", c.bin.version)
		return id, initialise(ctx, c.dir, c.bin, id, c.opts.Fast)
	}
	switch owner, err := ownerOf(pgdata); {
	case err != nil:
		return id, err
	case owner == id.uid:
	case id.dropped: // A copy made by root.
		if err := id.ownAll(pgdata); err != nil {
			return id, err
		}
	default:
		return id, fmt.Errorf("%s belongs to uid %d, not to %s; run engined as its owner", pgdata, owner, id.name)
	}
	return id, clearOrphan(ctx, pgdata, c.log)
}

// launch starts the server and waits until it answers.
func (c *Cluster) launch(ctx context.Context, id identity) error {
	log, err := openLog(c.dir.log())
	if err != nil {
		return err
	}
	defer log.Close()
	settings := c.opts.settings(c.socket)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	began := time.Now()
	c.proc, err = spawn(child{
		path: c.bin.path("postgres"), args: args, dataDir: c.dir.pgdata(), id: id,
		stdout: log.File, deathSignal: syscall.SIGINT, // A fast shutdown.
	})
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx); err != nil {
		err = errors.Join(err, c.end(context.WithoutCancel(ctx), syscall.SIGQUIT))
		return fmt.Errorf("PostgreSQL %s on %s: %w\n%s", c.bin.version, c.dir.path, err, log.tail())
	}
	c.log.Info("Postgres is ready", "version", c.bin.version, "dir", c.dir.path, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (c *Cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.StartTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := c.ping(ctx)
		if err == nil {
			return nil
		}
		// A refusal that waiting will not mend.
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code != "57P03" && pg.Code != "53300" {
			return err
		}
		select {
		case <-c.proc.done:
			return fmt.Errorf("the server ended at once: %w", c.proc.err)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (c *Cluster) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}

// DSN is the connection string of a database, as a URL that pgx and psql read.
func (c *Cluster) DSN(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(Superuser), Path: "/" + database,
		RawQuery: url.Values{"host": {c.socket}, "port": {"5432"}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// EnsureDatabase creates the database where absent and returns its DSN.
func (c *Cluster) EnsureDatabase(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	const duplicate = "42P04"
	if pg := (*pgconn.PgError)(nil); err != nil && (!errors.As(err, &pg) || pg.Code != duplicate) {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return c.DSN(name), nil
}

// Dir is the directory the cluster owns, as an absolute path.
func (c *Cluster) Dir() string { return c.dir.path }

// SocketDir is the directory of the server's socket.
func (c *Cluster) SocketDir() string { return c.socket }

// Version is the server's version, such as "17.5".
func (c *Cluster) Version() string { return c.bin.version }

// Done is closed when the server has ended, asked to or not.
func (c *Cluster) Done() <-chan struct{} { return c.proc.done }

// Stop shuts the server down (fast: open transactions are rolled back), and
// gives the directory up. When ctx ends first it is shut down at once, which
// the next start recovers from. Later calls return what the first did.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Do(func() {
		errs := []error{c.end(ctx, syscall.SIGINT), os.RemoveAll(c.socket)}
		if c.opts.Ephemeral {
			errs = append(errs, os.RemoveAll(c.dir.path))
		}
		if err := errors.Join(append(errs, c.dir.release())...); err != nil {
			c.stopErr = fmt.Errorf("stop postgres: %w", err)
		}
	})
	return c.stopErr
}

// end sends the signal and waits for the server to end, less and less politely.
func (c *Cluster) end(ctx context.Context, first syscall.Signal) error {
	c.proc.signal(first)
	grace := time.NewTimer(fastTimeout)
	defer grace.Stop()
	select {
	case <-c.proc.done:
		return nil
	case <-ctx.Done():
	case <-grace.C:
	}
	c.proc.signal(syscall.SIGQUIT)
	quit := time.NewTimer(quitTimeout)
	defer quit.Stop()
	select {
	case <-c.proc.done:
		return nil
	case <-quit.C:
	}
	c.proc.signal(syscall.SIGKILL)
	<-c.proc.done
	return errors.New("the server had to be killed")
}
