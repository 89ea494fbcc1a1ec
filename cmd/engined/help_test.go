package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpShowsEveryFlagOnceInLinesThatCanBeRead, of every command.
func TestHelpShowsEveryFlagOnceInLinesThatCanBeRead(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		args := strings.Fields(cmd.CommandPath())[1:]
		got := engined(t, append(args, "--help")...).ok(t).out
		for line := range strings.Lines(got) {
			if columns(strings.TrimSuffix(line, "\n")) > helpColumns+10 { // pflag leaves short ends of words on the line
				t.Errorf("engined %s --help: %q", strings.Join(args, " "), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			begin := "  "
			if f.Shorthand != "" {
				begin = "-" + f.Shorthand + ", "
			}
			if n := strings.Count(got, begin+"--"+f.Name+" "); n != 1 {
				t.Errorf("engined %s --help shows --%s %d times", strings.Join(args, " "), f.Name, n)
			}
		})
		for _, sub := range cmd.Commands() {
			if !strings.Contains(got, "  "+sub.Name()+" ") {
				t.Errorf("engined %s --help does not show %s", strings.Join(args, " "), sub.Name())
			}
			walk(sub)
		}
	}
	walk((&cli{lookupEnv: noEnv}).root())
}

func TestHelpListsSettingsByTopic(t *testing.T) {
	t.Parallel()
	got := engined(t, "serve", "--help").ok(t).out
	at := 0
	for _, want := range []string{"\nFlags:\n", "\nHTTP and keys:\n", "--listen", "\nPostgres:\n", "--database-url", "\nNATS:\n", "--nats-url", "\nSummarizers:\n", "--summarizers ", "\nEverywhere:\n", "--config"} {
		next := strings.Index(got[at:], want)
		if next < 0 {
			t.Fatalf("no %q behind byte %d:\n%s", want, at, got)
		}
		at += next
	}
	if got := engined(t, "keys", "--help").ok(t).out; strings.Contains(got, "engined keys [flags]") || !strings.Contains(got, "engined keys COMMAND") {
		t.Errorf("it says that keys does something by itself:\n%s", got)
	}
	if got := engined(t, "replay", "--help").ok(t).out; strings.Contains(got, "--retention-age") || !strings.Contains(got, "--compaction-target") {
		t.Errorf("replay offers settings that change nothing of it:\n%s", got)
	}
}
