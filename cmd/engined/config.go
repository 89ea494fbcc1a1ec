package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

func (c *cli) config() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "List the settings, what they are here and who said so",
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	markdown := cmd.Flags().Bool("markdown", false, "print docs/configuration.md")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *markdown {
			c.began = true
			return config.Markdown(c.out)
		}
		_, settings, err := c.load(cmd, nil)
		if err != nil {
			return usageError{err}
		}
		c.began = true
		if *asJSON {
			type row struct {
				Name   string `json:"name"`
				Env    string `json:"env"`
				Value  string `json:"value"`
				Source string `json:"source"`
			}
			rows := make([]row, len(settings))
			for i, s := range settings {
				rows[i] = row{s.Name, s.Env(), s.Shown(), string(s.Source)}
			}
			return printJSON(c.out, map[string]any{"settings": rows})
		}
		t := newTable(c.out, left("SETTING"), left("VALUE"), left("FROM"))
		for _, s := range settings {
			t.row(s.Name, cmp.Or(oneLine(s.Shown(), 60), "-"), string(s.Source))
		}
		return t.flush()
	}
	return cmd
}
