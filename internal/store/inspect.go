package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/engined/engined/internal/store/db"
)

// Schema tells the version that the database is at and the one that this
// program was made for. It creates the empty table of versions where that is
// missing.
func Schema(ctx context.Context, url string) (current, target int64, err error) {
	migrated, err := hasSchema(ctx, url)
	if err != nil {
		return 0, 0, fmt.Errorf("schema: %w", errUnavailable(err))
	}
	err = withProvider(url, nil, func(p *goose.Provider) error {
		if !migrated { // asking goose would make its table
			target = newest(p)
			return nil
		}
		current, target, err = p.GetVersions(ctx)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("schema: %w", errUnavailable(err))
	}
	return current, target, nil
}

// hasSchema reports whether the database was ever migrated.
func hasSchema(ctx context.Context, url string) (bool, error) {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return false, fmt.Errorf("database url: %w", err)
	}
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler may stand between
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return db.New(conn).HasSchema(ctx)
}

// newest is the version that all migrations together lead to.
func newest(p *goose.Provider) (version int64) {
	for _, src := range p.ListSources() {
		version = max(version, src.Version)
	}
	return version
}

// ServerVersion is the server's own, such as "17.5 (Debian 17.5-1)".
func (s *Store) ServerVersion(ctx context.Context) (string, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("postgres: %w", errUnavailable(err))
	}
	defer c.Release()
	return c.Conn().PgConn().ParameterStatus("server_version"), nil
}
