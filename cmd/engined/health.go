package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

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
		ready, detail := true, string(raw)
		if !*live {
			if ready, detail, err = cl.Ready(ctx); err != nil {
				return err
			}
		}
		if *asJSON {
			if !json.Valid([]byte(detail)) {
				text, _ := json.Marshal(detail) // a string always marshals
				detail = string(text)
			}
			fmt.Fprintf(c.out, "{\"live\":true,\"ready\":%t,\"detail\":%s}\n", ready, detail)
		} else if ready {
			fmt.Fprintf(c.out, "%s lives and is ready\n", cl.URL())
		}
		if !ready {
			return errors.New(cl.URL() + " is not ready: " + oneLine(detail, 0))
		}
		return nil
	})
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
