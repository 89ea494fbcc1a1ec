package transcripts_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

// kinds are the folders of transcripts.
var kinds = []string{"pi", "openclaw", "claude-code", "tau-bench"}

// dialect names whose rules a window must keep.
type dialect string

const (
	openClaw  dialect = "openclaw"
	anthropic dialect = "anthropic"
	openAI    dialect = "openai"
)

// conversation is what one session of a file holds.
type conversation struct {
	key      string
	dialect  dialect
	messages []json.RawMessage
	keys     []string
	read     []said
}

// file is one transcript.
type file struct {
	// name is its folder and name.
	name     string
	sessions []*conversation
	messages int
	// repeated entries of the file are the same entry under the same id.
	repeated int
	broken   int
}

// transcriptsIn reads all transcripts of a folder.
func transcriptsIn(t *testing.T, dir string) []*file {
	t.Helper()
	var out []*file
	for _, kind := range kinds {
		paths, err := filepath.Glob(filepath.Join(dir, kind, "*.json*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no transcripts in %s/%s: %v", dir, kind, err)
		}
		for _, path := range paths {
			out = append(out, load(t, kind, path))
		}
	}
	return out
}

// bundled are the transcripts that come with the tests, large those that
// ENGINED_TRANSCRIPTS names.
func bundled(t *testing.T) []*file { return transcriptsIn(t, "testdata") }

func large(t *testing.T) []*file {
	t.Helper()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS names no folder of transcripts")
	}
	if testing.Short() {
		t.Skip("runs over all transcripts")
	}
	return transcriptsIn(t, dir)
}

func load(t *testing.T, kind, path string) *file {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f := &file{name: kind + "/" + filepath.Base(path)}
	sessions := map[string]*conversation{}
	known := map[string]bool{}
	report, err := transcript.Read(context.Background(), path, in, func(e transcript.Entry) error {
		if e.Message == nil {
			return nil
		}
		key := f.name
		if e.Session != "" {
			key += ":" + e.Session
		}
		c := sessions[key]
		if c == nil {
			c = &conversation{key: key}
			sessions[key] = c
			f.sessions = append(f.sessions, c)
		}
		id := fmt.Sprint(e.ID, "/", hash(e.Message))
		if known[key+id] {
			f.repeated++
			return nil
		}
		known[key+id] = true
		m, err := read(e.Message)
		if err != nil {
			return fmt.Errorf("line %d: %w", e.Line, err)
		}
		c.messages, c.keys, c.read = append(c.messages, e.Message), append(c.keys, id), append(c.read, m)
		f.messages++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.broken = len(report.Broken)
	for _, c := range f.sessions {
		switch report.Format {
		case transcript.OpenClaw:
			c.dialect = openClaw
		case transcript.ClaudeCode:
			c.dialect = anthropic
		default:
			c.dialect = openAI
		}
	}
	return f
}

func hash(m json.RawMessage) string {
	sum := message.Hash(m, false)
	return hex.EncodeToString(sum[:8])
}
