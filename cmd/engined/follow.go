package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/engined/engined/internal/client"
)

// follow shows what comes until somebody ends it. A stream that breaks off, or
// a node that is away for a while, is tried again from where it was.
func (c *cli) follow(ctx context.Context, cl *client.Client, key string, last *int64, see func(client.Event) error) error {
	for told := false; ; {
		err := cl.Stream(ctx, key, *last, func(e client.Event) error {
			told = false
			return see(e)
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user ended it; that broke the stream
		}
		var p *client.Problem
		if errors.As(err, &p) && p.Status < 500 {
			return err
		}
		if err != nil && !told {
			fmt.Fprintf(c.err, "engined: %v; trying again\n", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
