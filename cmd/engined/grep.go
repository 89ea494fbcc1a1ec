package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

// grepFlags are the filters of a search, by the name of their parameter.
var grepFlags = []struct{ flag, param, usage string }{
	{"session", "sessionKey", "only this session"},
	{"role", "role", "only these roles, separated by commas: user, assistant, toolResult, system, note"},
	{"kind", "kind", "only these kinds, separated by commas: message, toolResult, toolCall, summary"},
	{"tool", "tool", "only calls and results of this tool"},
	{"epoch", "epoch", "only what was written in this epoch"},
	{"since", "since", "not before this time: RFC 3339, a date (UTC) or Unix milliseconds"},
	{"until", "until", "before this time, written as --since"},
	{"sort", "sort", "relevance or recent"},
	{"match", "match", "all: every word and phrase, as it stands; any: some of the words, in any English form"},
}

func (c *cli) grep() *cobra.Command {
	cmd := &cobra.Command{
		Use: "grep QUERY", Short: "Search messages, tool results, tool calls and summaries", Args: oneArg,
		Long: words(
			"Search messages, tool results, tool calls and summaries of all sessions, compacted ones too.",
			"",
			"QUERY is words and \"quoted phrases\"; a hit holds all of them. word* is a prefix; every other",
			"sign is text: a|b, -rf (behind --) and 🔥 are found as they stand. Exits with 1 when nothing is found."),
		Example: words(
			`  engined grep 'docker "connection refused"'`,
			`  engined grep --session agent:main:main --kind toolResult 'v1.2.*'`,
			`  engined grep --regex 'timeout after \d+ms'`,
			`  engined grep -- -rf`),
	}
	asJSON := jsonFlag(cmd)
	limit := limitFlag(cmd, 20, "most hits; 0 is all")
	regex := cmd.Flags().BoolP("regex", "E", false, "QUERY is a regular expression (RE2), newest hits first")
	active := cmd.Flags().Bool("active", false, "only what no reset or rewind hides")
	values := make([]*string, len(grepFlags))
	for i, f := range grepFlags {
		values[i] = cmd.Flags().String(f.flag, "", f.usage)
	}
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		filters := url.Values{}
		for i, f := range grepFlags {
			if *values[i] != "" {
				filters.Set(f.param, *values[i])
			}
		}
		if *regex {
			filters.Set("regex", "true")
		}
		if *active {
			filters.Set("path", "active")
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		return c.search(ctx, cl, args[0], filters, *limit, *asJSON)
	})
}

func (c *cli) search(ctx context.Context, cl *client.Client, q string, filters url.Values, limit int, asJSON bool) error {
	note, current := "", true
	seen, err := list(c, listing[client.Hit]{
		name: "hits", limit: limit, asJSON: asJSON,
		page: func(after string, most int) ([]client.Hit, string, error) {
			found, err := cl.Search(ctx, q, filters, after, most)
			if after == "" {
				current, note = found.Current, found.Note
			}
			return found.Hits, found.Next, err
		},
		raw: func(h *client.Hit) json.RawMessage { return h.Raw },
		show: func(h *client.Hit) error {
			_, err := fmt.Fprint(c.out, c.hitText(*h))
			return err
		},
	})
	if err != nil {
		return err
	}
	if !current {
		fmt.Fprintln(c.err, "engined: the newest messages are not indexed yet")
	}
	if note != "" {
		fmt.Fprintln(c.err, "engined: "+oneLine(note, 0))
	}
	if seen > 0 || asJSON {
		return nil
	}
	if session := filters.Get("sessionKey"); session != "" { // a key that was misspelt finds nothing either
		if _, err := cl.Session(ctx, session); err != nil {
			return err
		}
	}
	return errNothingFound
}

var errNothingFound = errors.New("nothing found")

// hitText shows a hit: where it is, and its snippet with the matches set off.
func (c *cli) hitText(h client.Hit) string {
	var about []string
	for _, s := range []string{h.Kind, h.Role, h.Tool} {
		if s != "" && (len(about) == 0 || about[len(about)-1] != s) {
			about = append(about, oneLine(s, 40))
		}
	}
	if !h.Active {
		about = append(about, "off the path")
	}
	return fmt.Sprintf("%s  %s  %s  %s\n    %s\n", oneLine(h.SessionKey, 0), "#"+strconv.FormatInt(h.Seq, 10),
		strings.Join(about, " "), h.At.UTC().Format("2006-01-02 15:04"), c.snippetText(h))
}

// snippetText is a snippet on one line. Matches are bold on a terminal.
func (c *cli) snippetText(h client.Hit) string {
	begin, end := "", ""
	if terminalWidth(c.out) > 0 {
		begin, end = "\x1b[1;33m", "\x1b[0m"
	}
	runes := []rune(h.Snippet)
	var b strings.Builder
	at := 0
	for _, m := range h.Marks {
		if m.Start < at || m.End > len(runes) || m.Start > m.End {
			continue
		}
		b.WriteString(padded(string(runes[at:m.Start])))
		b.WriteString(begin + padded(string(runes[m.Start:m.End])) + end)
		at = m.End
	}
	b.WriteString(padded(string(runes[at:])))
	return strings.TrimSpace(b.String())
}

// padded is oneLine with a blank where the text begins or ends with some.
func padded(s string) string {
	line := oneLine(s, 0)
	if line == "" {
		if s != "" {
			return " "
		}
		return ""
	}
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		line = " " + line
	}
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsSpace(last) {
		line += " "
	}
	return line
}
