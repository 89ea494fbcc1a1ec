package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

func (c *cli) importFiles() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Import transcripts; importing again changes nothing",
		Long: words(
			"Import transcripts of OpenClaw and pi (JSONL), of Claude Code (JSONL) and plain chats (JSON of OpenAI or",
			"Anthropic messages). Each message is stored byte for byte under a key made of its entry, so importing a file",
			"again, or a longer version of it, adds only what is new. Lines that cannot be read are reported and skipped.",
			"Where a transcript of OpenClaw or pi branches, resets or moves its leaf, the session shows what the host showed.",
			"",
			"A file goes to the session import:NAME; further conversations in it go to sessions of their own behind it.",
			"- is the standard input, with --session.",
		),
		Args: someFiles,
	}
	asJSON := jsonFlag(cmd)
	session := cmd.Flags().String("session", "", "session key; by default import: and the file's name")
	batch := cmd.Flags().Int("batch", 500, "most messages of one request")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		if *batch < 1 {
			return usageError{fmt.Errorf("--batch: %d is below 1", *batch)}
		}
		keys, err := sessionKeys(args, *session)
		if err != nil {
			return usageError{err}
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		if _, err := cl.Health(ctx); err != nil { // before anything is read
			return err
		}
		progress := newProgress(c.err, terminalWidth(c.err) > 0, c.now)
		reports := make([]*fileReport, len(args))
		for i, path := range args {
			im := &importer{node: cl, key: keys[i], batch: *batch, progress: progress, stdin: c.in}
			reports[i] = im.file(ctx, path)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := c.printImport(reports, *asJSON); err != nil {
			return err
		}
		return importFailure(reports)
	})
}

// sessionKeys gives each file its session. Two files must not meet in one
// unless that was asked for.
func sessionKeys(paths []string, session string) ([]string, error) {
	keys := make([]string, len(paths))
	owner := map[string]string{}
	for i, path := range paths {
		if session != "" {
			keys[i] = session
			continue
		}
		if path == stdinName {
			return nil, errors.New("- is the standard input, which has no name: say --session")
		}
		name := filepath.Base(path)
		keys[i] = "import:" + strings.TrimSuffix(name, filepath.Ext(name))
		if other, taken := owner[keys[i]]; taken && other != path {
			return nil, fmt.Errorf("%s and %s would both go to session %s; import them one by one with --session", other, path, keys[i])
		}
		owner[keys[i]] = path
	}
	return keys, nil
}

// importFailure is nil while every file gave something.
func importFailure(reports []*fileReport) error {
	var failed []error
	for _, r := range reports {
		switch {
		case r.err != nil:
			failed = append(failed, r.failure())
		case r.New+r.AlreadyThere == 0 && len(r.Broken) > 0:
			failed = append(failed, fmt.Errorf("%s: nothing in it could be imported", r.File))
		}
	}
	return errors.Join(failed...)
}
