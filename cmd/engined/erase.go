package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) erase() *cobra.Command {
	cmd := &cobra.Command{
		Use: "erase KEY", Short: "Erase a session for good", Args: oneArg,
		Long: words(
			"Erase everything that is stored of a session: events, bodies, keys, summaries, drafts, answers, the lot.",
			"It is gone at once, for every node, and cannot be brought back; late writes are refused. What stays is a",
			"tombstone of hashes and counts. Backups keep what they have: see docs/operations.md.",
			"",
			"With --prefix, KEY is the beginning of the keys of all sessions to erase.",
			"Asks before it acts, unless --yes is given. The receipt says how many rows of each table went.",
		),
	}
	asJSON := jsonFlag(cmd)
	yes := cmd.Flags().Bool("yes", false, "do not ask")
	prefix := cmd.Flags().Bool("prefix", false, "erase all sessions whose keys begin with KEY")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		if !*yes {
			if err := c.confirmErase(ctx, cl, args[0], *prefix); err != nil {
				return err
			}
		}
		call := cl.Erase
		if *prefix {
			call = cl.EraseMany
		}
		receipt, raw, err := call(ctx, args[0])
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printRaw(c.out, raw)
		}
		c.printReceipt(receipt)
		return nil
	})
}

// confirmErase shows what is about to go and wants a yes.
func (c *cli) confirmErase(ctx context.Context, cl *client.Client, key string, prefix bool) error {
	what := "all sessions whose keys begin with " + oneLine(key, 0)
	if !prefix {
		s, err := cl.Session(ctx, key)
		if err != nil {
			return err
		}
		what = fmt.Sprintf("%s with %s", oneLine(key, 0), plural(s.Head, "event"))
	}
	fmt.Fprintf(c.err, "Erase %s for good? Type yes: ", what)
	in := c.in
	if in == nil {
		in = os.Stdin
	}
	line, _ := bufio.NewReader(in).ReadString('\n') // the end of the input is no yes
	if strings.TrimSpace(line) != "yes" {
		fmt.Fprintln(c.err)
		return errors.New("nothing was erased; say --yes to erase without being asked")
	}
	return nil
}

func (c *cli) printReceipt(r client.Receipt) {
	fmt.Fprintf(c.out, "Erased: %s\n", plural(r.Erased, "session"))
	for _, table := range slices.Sorted(maps.Keys(r.Counts)) {
		fmt.Fprintf(c.out, "%12s  %s\n", thousands(r.Counts[table]), oneLine(table, 0))
	}
	if !r.Complete {
		fmt.Fprintln(c.out, "All of it is hidden; a worker deletes the rest.")
	}
}
