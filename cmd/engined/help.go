package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/engined/engined/internal/config"
)

// helpColumns is how wide help is where there is no terminal, or a wider one.
const helpColumns = 120

// usage prints how a command is called: its subcommands, its own flags, and the
// settings that it takes, by what they are about.
func (c *cli) usage(cmd *cobra.Command) error {
	width := helpColumns
	if n := terminalWidth(c.out); n > 0 {
		width = min(n, width)
	}
	var b strings.Builder
	own, settings := flagsOf(cmd)
	b.WriteString("Usage:\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	// What has subcommands and no flag but --help does nothing by itself.
	if !cmd.HasAvailableSubCommands() || own.Lookup("json") != nil {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		commandsText(&b, cmd)
	}
	section := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", title, flags.FlagUsagesWrapped(width))
		}
	}
	section("Flags", own)
	for i, topic := range config.Topics() {
		section(topic.Title, settings[i])
	}
	section("Everywhere", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help says more about one.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

// flagsOf parts the flags that are a command's own from settings, by topic.
func flagsOf(cmd *cobra.Command) (own *pflag.FlagSet, settings []*pflag.FlagSet) {
	own = pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, topic := range config.Topics() {
		of := pflag.NewFlagSet("", pflag.ContinueOnError)
		of.SortFlags = false
		for _, name := range topic.Names {
			if f := cmd.LocalFlags().Lookup(name); f != nil {
				of.AddFlag(f)
			}
		}
		settings = append(settings, of)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(settings, func(of *pflag.FlagSet) bool { return of.Lookup(f.Name) != nil }) {
			own.AddFlag(f)
		}
	})
	return own, settings
}

// commandsText lists the subcommands by their groups.
func commandsText(b *strings.Builder, cmd *cobra.Command) {
	list := func(title, group string) {
		first := true
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() || sub.GroupID != group {
				continue
			}
			if first {
				fmt.Fprintf(b, "\n%s\n", title)
				first = false
			}
			fmt.Fprintf(b, "  %-*s  %s\n", cmd.Commands()[0].NamePadding(), sub.Name(), sub.Short)
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Commands:", "")
}
