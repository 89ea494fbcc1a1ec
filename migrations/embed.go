// Package migrations holds the schema's history as goose SQL files. They only
// go forward.
package migrations

import "embed"

// FS holds the migration files.
//
//go:embed *.sql
var FS embed.FS

// Keys holds those of a database that has the keys of sessions alone.
//
//go:embed keys/*.sql
var Keys embed.FS
