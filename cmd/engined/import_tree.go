package main

import (
	"context"
	"errors"
	"io"

	"github.com/engined/engined/internal/transcript"
)

// errTree ends a scan.
var errTree = errors.New("more than a list")

// branches tells whether a transcript is more than a list of messages: whether
// it resets, moves its leaf or has entries that follow another one than the
// entry before them. What can't be read is the import's to report.
func branches(ctx context.Context, name string, r io.Reader) bool {
	seen := map[string]bool{}
	previous := ""
	_, err := transcript.Read(ctx, name, r, func(e transcript.Entry) error {
		switch {
		case e.Raw == nil:
			return nil
		case e.Kind == "reset", e.Kind == "leaf", e.ParentID != previous && seen[e.ParentID]:
			return errTree
		}
		if e.Kind != "session" {
			seen[e.ID], previous = true, e.ID
		}
		return nil
	})
	return errors.Is(err, errTree)
}
