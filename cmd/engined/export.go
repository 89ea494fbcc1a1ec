package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) export() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export KEY", Short: "Write a session's log as a transcript", Args: oneArg,
		Long: words(
			"Write a session as a transcript that OpenClaw and pi can read and `engined import` too: messages byte for byte,",
			"resets and moves of the leaf, each entry with its parent. With --events every event is written instead, as the",
			"rows of GET …/events, a line each. What a fork inherited is in its parent's log and not in its own.",
		),
	}
	out := cmd.Flags().StringP("output", "o", "", "the file to write, which must not exist; by default standard output")
	rows := cmd.Flags().Bool("events", false, "write every event as the API tells it")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) (err error) {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		s, err := cl.Session(ctx, args[0])
		if err != nil {
			return err
		}
		w := c.out
		if *out != "" {
			f, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			w = f
		}
		return c.writeTranscript(ctx, cl, s, w, *rows)
	})
}

func (c *cli) writeTranscript(ctx context.Context, cl *client.Client, s client.Session, to io.Writer, rows bool) error {
	w := bufio.NewWriterSize(to, 1<<16)
	if !rows {
		header, err := json.Marshal(map[string]any{"type": "session", "version": 3, "id": s.SessionKey, "timestamp": c.now().UTC().Format(time.RFC3339)})
		if err != nil {
			return err
		}
		_, _ = w.Write(append(header, '\n')) // Flush tells of errors
	}
	n := c.counting("events")
	defer n.end()
	var tree exportTree
	err := eachEvent(ctx, cl, s.SessionKey, func(e client.Event) error {
		n.at(int(e.Seq), int(s.Head))
		line, err := e.Raw, error(nil)
		if !rows {
			line, err = tree.entry(e)
		}
		if err != nil || line == nil {
			return err
		}
		// A line is one row: what a message's JSON holds between its tokens may
		// break lines, what its texts hold may not.
		if bytes.IndexByte(line, '\n') >= 0 {
			var flat bytes.Buffer
			if err := json.Compact(&flat, line); err != nil {
				return err
			}
			line = flat.Bytes()
		}
		_, _ = w.Write(line)
		return w.WriteByte('\n')
	})
	return errors.Join(err, w.Flush())
}

// exportTree hangs events into a host's tree, where a reset is an entry that
// what follows it descends from.
type exportTree struct {
	// leaf is the newest message, reset the reset that no message follows yet.
	leaf, reset int64
}

// parent is the entry that a message descends from.
func (t *exportTree) parent(e client.Event) int64 {
	parent := e.ParentSeq
	if t.reset > 0 && (parent == 0 || parent == t.leaf) {
		parent, t.reset = t.reset, 0
	}
	t.leaf = e.Seq
	return parent
}

// entry is what a host's transcript has for an event; nil for what only the
// service knows.
func (t *exportTree) entry(e client.Event) (json.RawMessage, error) {
	name := func(seq int64) string {
		if seq == 0 {
			return "null"
		}
		return `"e` + strconv.FormatInt(seq, 10) + `"`
	}
	entry := func(kind string, parent int64, rest string) json.RawMessage {
		return fmt.Appendf(nil, `{"type":%q,"id":%s,"parentId":%s,"timestamp":%q%s}`,
			kind, name(e.Seq), name(parent), e.RecordedAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"), rest)
	}
	switch e.Type {
	case "message.appended":
		return entry("message", t.parent(e), `,"message":`+string(e.Message)), nil
	case "leaf.moved":
		var to int64
		if err := targetOf(e, "to", &to); err != nil {
			return nil, err
		}
		t.leaf, t.reset = to, 0
		return entry("leaf", to, `,"targetId":`+name(to)), nil
	case "session.reset":
		var keep int64
		if err := targetOf(e, "keepFrom", &keep); err != nil {
			return nil, err
		}
		rest := ""
		if keep > 0 {
			rest = `,"firstKeptEntryId":` + name(keep)
		}
		t.reset = e.Seq
		return entry("reset", t.leaf, rest), nil
	default:
		return nil, nil
	}
}

// targetOf reads a seq out of what an event says; absent is 0.
func targetOf(e client.Event, name string, into *int64) error {
	var data map[string]json.RawMessage
	if err := dataOf(e, &data); err != nil {
		return err
	}
	if raw, ok := data[name]; ok {
		return json.Unmarshal(raw, into)
	}
	return nil
}
