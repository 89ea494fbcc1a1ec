package testdb

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // The driver goose uses.
	"github.com/pressly/goose/v3"
)

const templatePrefix = "engined_tpl_"

// templateLock is the advisory lock under which templates are built.
const templateLock = 0x656e67696e6564 // "engined"

// templates remembers the templates this process has seen.
type templates struct {
	mu   sync.Mutex
	seen map[string]bool
}

// template returns the name of a database that holds the given migrations,
// building it where no process has yet.
func (s *server) template(ctx context.Context, files fs.FS) (string, error) {
	sum, err := hashFiles(files)
	if err != nil {
		return "", err
	}
	name := templatePrefix + sum
	s.templates.mu.Lock()
	defer s.templates.mu.Unlock()
	if s.templates.seen[name] {
		return name, nil
	}
	err = s.admin(ctx, func(conn *pgx.Conn) error { return s.buildOnce(ctx, conn, name, files) })
	if err != nil {
		return "", fmt.Errorf("migrate the template database: %w", err)
	}
	if s.templates.seen == nil {
		s.templates.seen = map[string]bool{}
	}
	s.templates.seen[name] = true
	return name, nil
}

// buildOnce builds under another name and renames, so that a template that
// exists is whole. The lock goes with the connection.
func (s *server) buildOnce(ctx context.Context, conn *pgx.Conn, name string, files fs.FS) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return err
	}
	var exists bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	tmp := databasePrefix + "0_" + strings.ToLower(rand.Text()[:12]) // Hour 0: a leftover at once.
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+ident(tmp)+s.like("")); err != nil {
		return err
	}
	if err := s.migrate(ctx, tmp, files); err != nil {
		return errors.Join(err, drop(context.WithoutCancel(ctx), conn, tmp))
	}
	for _, sql := range []string{
		"ALTER DATABASE " + ident(tmp) + " RENAME TO " + ident(name),
		// A connection would make it unfit to be copied.
		"ALTER DATABASE " + ident(name) + " WITH ALLOW_CONNECTIONS false",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) migrate(ctx context.Context, database string, files fs.FS) (err error) {
	dsn, err := withDatabase(s.dsn, database)
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// hashFiles is a hash over the names and contents of the migrations.
func hashFiles(files fs.FS) (string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", errors.New("no migrations: no *.sql files given")
	}
	h := sha256.New()
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
