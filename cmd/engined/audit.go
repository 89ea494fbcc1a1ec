package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) audit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who called what",
		Long: words(
			"Show the calls of a tenant, newest first: when, with which key, on which session and with what outcome.",
			"It needs a key of scope admin. Calls appear within seconds.",
		),
	}
	asJSON := jsonFlag(cmd)
	limit := limitFlag(cmd, 50, "most rows; 0 is all")
	session := cmd.Flags().String("session", "", "of this session alone")
	key := cmd.Flags().String("key-id", "", "of this API key alone, by its id")
	since := cmd.Flags().String("since", "", "not before this time: RFC 3339, a date (UTC) or Unix milliseconds")
	until := cmd.Flags().String("until", "", "before this time, written as --since")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		q := url.Values{}
		for name, value := range map[string]string{"sessionKey": *session, "keyId": *key, "since": *since, "until": *until} {
			if value != "" {
				q.Set(name, value)
			}
		}
		t := newTable(c.out, left("AT"), left("KEY"), right("STATUS"), left("CALL"), left("SESSION"))
		_, err = list(c, listing[client.AuditEntry]{
			name: "audit", limit: *limit, asJSON: *asJSON, flush: t.flush,
			page: func(after string, most int) ([]client.AuditEntry, string, error) {
				return cl.Audit(ctx, q, after, most)
			},
			raw: func(r *client.AuditEntry) json.RawMessage { return r.Raw },
			show: func(r *client.AuditEntry) error {
				t.row(r.At.UTC().Format(time.RFC3339), oneLine(r.KeyID, 0), strconv.Itoa(r.Status), r.Method+" "+r.Route, oneLine(r.SessionKey, 0))
				return nil
			},
		})
		return err
	})
}
