package main

import (
	"context"
	"fmt"
)

// plainIndex makes the index that Postgres would be used with by hand: the same
// texts, its own configuration without stems and stop words.
func (b *bench) plainIndex(ctx context.Context) error {
	for _, sql := range []string{
		"CREATE TABLE plain (id bigint PRIMARY KEY, tenant_id text NOT NULL, session_key text NOT NULL, body text NOT NULL, words tsvector NOT NULL)",
		`INSERT INTO plain SELECT p.doc, p.tenant_id, s.session_key, p.body, to_tsvector('simple', p.body)
		 FROM search_parts p JOIN sessions s ON s.tenant_id = p.tenant_id AND s.sid = p.sid`,
		"CREATE INDEX plain_words ON plain USING gin (words)",
		"CREATE INDEX plain_session ON plain (tenant_id, session_key)",
		"VACUUM ANALYZE plain",
		"VACUUM ANALYZE search_parts",
	} {
		if _, err := b.plain.Exec(ctx, sql); err != nil {
			return fmt.Errorf("plain index: %w", err)
		}
	}
	return nil
}

// plainSearch is a page of plain text search: all matches ranked, the best of
// them with a headline. It tells how many matched.
func (b *bench) plainSearch(ctx context.Context, q *query) (matches int64, err error) {
	rows, err := b.plain.Query(ctx, `
		SELECT t.n, ts_headline('simple', t.body, t.q) FROM (
			SELECT p.body, q.q, count(*) OVER () AS n, ts_rank(p.words, q.q) AS rank, p.id
			FROM plain p, CAST($1 AS tsquery) AS q (q)
			WHERE p.words @@ q.q AND p.tenant_id = $2 AND ($3 = '' OR p.session_key = $3)
			ORDER BY rank DESC, p.id DESC LIMIT $4) t`, q.plain, tenant, q.request.SessionKey, page)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var headline string
		if err := rows.Scan(&matches, &headline); err != nil {
			return 0, err
		}
	}
	return matches, rows.Err()
}
