package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// databasePrefix begins the name of a test's database; the hour it was
	// made and a random part follow.
	databasePrefix = "engined_test_"
	// leftoverAge is how old a database must be to count as left by a killed
	// run.
	leftoverAge = 3 * time.Hour
)

// server is a Postgres on which databases are made.
type server struct {
	dsn string
	// fileCopy says that databases are cloned by copying files (Postgres 15
	// on), which costs less than passing a template through the log.
	fileCopy  bool
	templates templates
	// membership keeps the shared cluster running for this process.
	membership *os.File
}

// newServer connects once to see what the server can do. What killed runs left
// on a server that outlives them is dropped.
func newServer(ctx context.Context, dsn string, external bool) (*server, error) {
	s := &server{dsn: dsn}
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		var version int
		if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
			return err
		}
		s.fileCopy = version >= 150000
		if !external {
			return nil
		}
		var may bool
		err := conn.QueryRow(ctx, "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&may)
		if err != nil {
			return err
		}
		if !may {
			return errors.New("the role of DATABASE_URL may not create databases: grant it with ALTER ROLE … CREATEDB, " +
				"or unset DATABASE_URL to use a private cluster")
		}
		return dropLeftovers(ctx, conn)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// admin runs fn on a connection of its own to the server's first database.
func (s *server) admin(ctx context.Context, fn func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return fn(conn)
}

// create makes a database from a template of ours, or without a schema.
func (s *server) create(ctx context.Context, template string) (string, error) {
	name := databasePrefix + strconv.FormatInt(time.Now().Unix()/3600, 10) + "_" + strings.ToLower(rand.Text()[:12])
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+ident(name)+s.like(template))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create a test database: %w", err)
	}
	return name, nil
}

func (s *server) like(template string) string {
	if template == "" {
		return " TEMPLATE template0 ENCODING 'UTF8'"
	}
	if s.fileCopy {
		return " TEMPLATE " + ident(template) + " STRATEGY FILE_COPY"
	}
	return " TEMPLATE " + ident(template)
}

func (s *server) drop(ctx context.Context, name string) error {
	err := s.admin(ctx, func(conn *pgx.Conn) error { return drop(ctx, conn, name) })
	if err != nil {
		return fmt.Errorf("drop a test database: %w", err)
	}
	return nil
}

// drop ends the database's connections too: a test may have leaked one.
func drop(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+ident(name)+" WITH (FORCE)")
	return err
}

func dropLeftovers(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", databasePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		hour, _, _ := strings.Cut(strings.TrimPrefix(name, databasePrefix), "_")
		n, err := strconv.ParseInt(hour, 10, 64)
		if err != nil || time.Since(time.Unix(n*3600, 0)) < leftoverAge {
			continue
		}
		// Another user's, or dropped by another process meanwhile: not ours to mend.
		if err := drop(ctx, conn, name); err != nil && !errors.As(err, new(*pgconn.PgError)) {
			return err
		}
	}
	return nil
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// withDatabase returns the DSN, a URL or keywords, with another database.
func withDatabase(dsn, name string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " dbname=" + name, nil // The last of a keyword counts.
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("DATABASE_URL is not a URL") // Without the password in it.
	}
	u.Path = "/" + name
	q := u.Query()
	q.Del("dbname")
	q.Del("database")
	u.RawQuery = q.Encode()
	return u.String(), nil
}
