package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitSignal  = 130
)

// cli is what the commands share: where they write and where settings come from.
type cli struct {
	out, err  io.Writer
	in        io.Reader // os.Stdin where nil
	lookupEnv func(string) (string, bool)
	// now tells ages; the system's clock where nil.
	now func() time.Time

	configFile string
	began      bool // a command runs, so an error is none of usage
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs a command line and returns the exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	if c.now == nil {
		c.now = time.Now
	}
	root := c.root()
	root.SetArgs(args)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var usage usageError
	if !c.began || errors.As(err, &usage) {
		fmt.Fprintf(c.err, "engined: %v\nTry: %s --help\n", err, cmd.CommandPath())
		return exitUsage
	}
	if errors.Is(context.Cause(ctx), errSignal) && errors.Is(err, context.Canceled) {
		return exitSignal
	}
	fmt.Fprintf(c.err, "engined: %v\n", err)
	if hint := hintFor(err); hint != "" {
		fmt.Fprintf(c.err, "Hint: %s\n", hint)
	}
	return exitFailure
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "engined",
		Short:         "A context engine for AI agents, as a service",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.PersistentFlags().StringVar(&c.configFile, "config", "", "settings file (ENGINED_CONFIG; by default engined.yaml, where it exists)")
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(c.usage)
	root.SetHelpCommandGroupID("admin")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "act", Title: "Act:"},
		&cobra.Group{ID: "admin", Title: "Administer:"},
	)
	for _, g := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"run", []*cobra.Command{c.dev(), c.serve(), c.worker(), c.demo()}},
		{"look", []*cobra.Command{c.sessions(), c.show(), c.events(), c.tail(), c.grep(), c.window(), c.summaries(), c.expand(), c.diff(), c.replay(), c.cacheReport()}},
		{"act", []*cobra.Command{c.importFiles(), c.export(), c.compact(), c.undoCompaction(), c.maintain(), c.reset(), c.rewind(), c.fork(), c.erase()}},
		{"admin", []*cobra.Command{c.migrate(), c.doctor(), c.rebuild(), c.retention(), c.keys(), c.tenants(), c.encryption(), c.audit(), c.engines(), c.summarizers(), c.health(), c.openapi(), c.config(), c.version()}},
	} {
		for _, cmd := range g.cmds {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	return root
}

// command fills in what every command has: its settings, loaded before run.
func (c *cli) command(cmd *cobra.Command, scope config.Scope, defaults map[string]string, run func(ctx context.Context, cfg config.Config, args []string) error) *cobra.Command {
	config.AddFlags(cmd.Flags(), scope, defaults)
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, _, err := c.load(cmd, defaults)
		if err != nil {
			return usageError{err}
		}
		c.began = true
		return run(cmd.Context(), cfg, args)
	}
	return cmd
}

// load merges the settings of a command.
func (c *cli) load(cmd *cobra.Command, defaults map[string]string) (config.Config, []config.Setting, error) {
	file := c.configFile
	if file == "" {
		file, _ = c.lookupEnv("ENGINED_CONFIG")
	}
	if file == "" {
		if _, err := os.Stat("engined.yaml"); !errors.Is(err, fs.ErrNotExist) {
			file = "engined.yaml"
		}
	}
	return config.Load(config.Input{Flags: cmd.Flags(), LookupEnv: c.lookupEnv, File: file, Defaults: defaults})
}

// node is a client of the node that the settings name.
func node(cfg config.Config) (*client.Client, error) {
	cl, err := client.New(cfg.URL, cfg.Key)
	if err != nil || cfg.CA == "" {
		return cl, err
	}
	pem, err := os.ReadFile(cfg.CA)
	if err == nil {
		err = cl.TrustCA(pem)
	}
	if err != nil {
		return nil, fmt.Errorf("--ca %s: %w", cfg.CA, err)
	}
	return cl, nil
}

// hintFor says what to do about an error, where that is known.
func hintFor(err error) string {
	var away *client.UnreachableError
	var p *client.Problem
	switch {
	case errors.As(err, &away) && isUntrusted(err):
		return "--ca FILE names the certificates that the node's is signed by"
	case errors.As(err, &away) && errors.Is(err, http.ErrSchemeMismatch):
		return "this node answers plain HTTP: name it with http://"
	case errors.As(err, &away):
		return "start a node with `engined dev`, or name one with --url"
	case !errors.As(err, &p):
		return ""
	}
	switch p.Status {
	case 400:
		if strings.Contains(p.Detail, "HTTP request to an HTTPS server") {
			return "this node answers HTTPS: name it with https://"
		}
	case 401:
		if p.Keyed {
			return "the key that was given does not count here; `engined keys list` shows those that do"
		}
		return "give an API key with --key or ENGINED_KEY"
	case 404:
		if p.Field == "id" {
			return "`engined summaries KEY` lists a session's summaries"
		}
		if p.Slug() != "unknown-session" {
			return ""
		}
		return "`engined sessions` lists the sessions of this key's tenant"
	case 413:
		return "the node's limits are settings; see docs/configuration.md"
	case 429, 503:
		if wait := p.Wait(); wait > 0 {
			return fmt.Sprintf("try again in %s", wait)
		}
		return "try again soon; `engined health` says what is not ready"
	}
	if p.Slug() == "stale-head" {
		return fmt.Sprintf("the session is at seq %d", p.Head)
	}
	return ""
}

// isUntrusted reports a certificate that is signed by nobody known.
func isUntrusted(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted)
}

// words joins lines of help.
func words(lines ...string) string { return strings.Join(lines, "\n") }
