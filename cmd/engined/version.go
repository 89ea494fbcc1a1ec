package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

// release is set by the linker in releases.
var release = ""

// version is the release, else the revision that this program was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				changed = "+changes"
			}
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + changed
}

func (c *cli) version() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version"}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, 0, nil, func(context.Context, config.Config, []string) error {
		if *asJSON {
			return printJSON(c.out, map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
		}
		_, err := fmt.Fprintf(c.out, "engined %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
