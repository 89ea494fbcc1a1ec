package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

const pageRows = 200

// listing shows rows page by page: as one object for machines, else as show does.
type listing[T any] struct {
	name   string // of the rows in the object
	limit  int    // most rows; 0 is all
	asJSON bool
	// page asks for some rows behind a cursor, "" for the first; next is "" at the
	// end.
	page func(after string, most int) (rows []T, next string, err error)
	raw  func(*T) json.RawMessage
	show func(*T) error
	// flush, if any, ends each page that is shown.
	flush func() error
}

// list tells how many rows there were, and whoever reads them if that was not all.
func list[T any](c *cli, l listing[T]) (seen int, err error) {
	out := rowWriter{w: c.out, name: l.name}
	after := ""
	for {
		rows, next, err := l.page(after, pageOf(l.limit, seen))
		if err != nil {
			return seen, err
		}
		for i := range rows {
			if l.asJSON {
				err = out.row(l.raw(&rows[i]))
			} else {
				err = l.show(&rows[i])
			}
			if err != nil {
				return seen, err
			}
		}
		after, seen = next, seen+len(rows)
		if !l.asJSON && l.flush != nil {
			if err := l.flush(); err != nil {
				return seen, err
			}
		}
		if next == "" || l.limit > 0 && seen >= l.limit {
			break
		}
	}
	if l.asJSON {
		return seen, out.end(after)
	}
	if after != "" { // or it would be taken for the whole
		fmt.Fprintf(c.err, "engined: there are more; --limit %d shows more, --limit 0 all\n", 2*seen)
	}
	return seen, nil
}

// pageOf is the size of the next page when at most limit rows are wanted.
func pageOf(limit, seen int) int {
	if limit <= 0 {
		return pageRows
	}
	return min(pageRows, limit-seen)
}

// jsonFlag declares --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON for machines")
}

// limitFlag is how many rows a listing has at most.
func limitFlag(cmd *cobra.Command, most int, usage string) *int {
	n := limit(most)
	cmd.Flags().Var(&n, "limit", usage)
	return (*int)(&n)
}

type limit int

func (l *limit) String() string { return strconv.Itoa(int(*l)) }
func (l *limit) Type() string   { return "int" }

func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("a number of rows, 0 or more")
	}
	*l = limit(n)
	return nil
}
