package store

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3"
)

// Schema tells the version that the database is at and the one that this
// program was made for. It creates the empty table of versions where that is
// missing.
func Schema(ctx context.Context, url string) (current, target int64, err error) {
	err = withProvider(url, nil, func(p *goose.Provider) error {
		current, target, err = p.GetVersions(ctx)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("schema: %w", errUnavailable(err))
	}
	return current, target, nil
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
