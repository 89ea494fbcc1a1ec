package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) health() *cobra.Command {
	cmd := &cobra.Command{
		Use: "health", Short: "Ask whether a node lives and is ready",
		Long: "Ask whether a node lives and is ready to serve. Exits 0 when it is, for use as a health check.",
	}
	asJSON := jsonFlag(cmd)
	live := cmd.Flags().Bool("live", false, "only ask whether it lives")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		raw, err := cl.Health(ctx)
		if err != nil {
			return err
		}
		if *live {
			if *asJSON {
				return printJSON(c.out, map[string]any{"live": true, "detail": raw})
			}
			_, err := fmt.Fprintf(c.out, "%s lives\n", cl.URL())
			return err
		}
		ready, err := cl.Ready(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			if err := printJSON(c.out, struct {
				Live   bool           `json:"live"`
				Ready  bool           `json:"ready"`
				Detail string         `json:"detail,omitempty"`
				Checks []client.Check `json:"checks,omitempty"`
			}{true, ready.Ready, unlessReady(ready), ready.Checks}); err != nil {
				return err
			}
		} else if ready.Ready {
			fmt.Fprintf(c.out, "%s lives and is ready\n", cl.URL())
			for _, ch := range ready.Checks {
				if !ch.OK {
					fmt.Fprintf(c.out, "but %s: %s\n", ch.Name, oneLine(ch.Detail, 0))
				}
			}
		}
		if !ready.Ready {
			return errors.New(cl.URL() + " lives and is not ready: " + oneLine(ready.Why(), 0))
		}
		return nil
	})
}

// unlessReady is why a node is not ready.
func unlessReady(r client.Readiness) string {
	if r.Ready {
		return ""
	}
	return r.Detail
}

func (c *cli) openapi() *cobra.Command {
	cmd := &cobra.Command{Use: "openapi", Short: "Print a node's OpenAPI document"}
	jsonFlag(cmd) // it is JSON either way
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		raw, err := cl.OpenAPI(ctx)
		if err != nil {
			return err
		}
		return printRaw(c.out, raw)
	})
}
