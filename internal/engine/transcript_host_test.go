package engine_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
)

// hostStep is a line of testdata/host.
type hostStep struct {
	Do, Key, SessionID  string
	Cursor              string
	LifecycleRevision   string
	Entries             []json.RawMessage
	AdvancementKey      string
	Admission, Terminal json.RawMessage
	Messages            []json.RawMessage
	Texts               []string
	Epoch               int64
}

// What real hosts did, and that the service then shows what they showed.
func TestHostsAsRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/host/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 1<<20)
			for n := 1; lines.Scan(); n++ {
				var s hostStep
				if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
					t.Fatal(err)
				}
				b.replay(n, s)
			}
			if err := lines.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func (b *bundle) replay(n int, s hostStep) {
	b.t.Helper()
	session := on(s.Key)
	session.SessionID, session.GatewayID = s.SessionID, "gateway"
	switch s.Do {
	case "transcript":
		p := contextengine.TranscriptParams{
			Session: session, Cursor: &s.Cursor, Entries: s.Entries, LifecycleRevision: s.LifecycleRevision,
		}
		for try := range 2 {
			res, err := b.Transcript(b.t.Context(), p)
			if err != nil {
				b.t.Fatalf("step %d: %v", n, err)
			}
			if res.Stored+res.Duplicates != len(s.Entries) || try == 1 && res.Stored > 0 {
				b.t.Errorf("step %d, try %d: %+v of %d entries", n, try, res, len(s.Entries))
			}
		}
		got, err := b.TranscriptCursor(b.t.Context(), session)
		if err != nil || got.Cursor == nil || *got.Cursor != s.Cursor || got.LifecycleRevision != s.LifecycleRevision {
			b.t.Errorf("step %d: cursor %+v, %v", n, got, err)
		}
	case "commit":
		for _, want := range []contextengine.TurnStatus{contextengine.TurnCommitted, contextengine.TurnDuplicate} {
			res, err := b.CommitTurn(b.t.Context(), contextengine.CommitTurnParams{
				Session: session, AdvancementKey: s.AdvancementKey, Messages: s.Messages, Admission: s.Admission, Terminal: s.Terminal,
			})
			if err != nil || res.Status != want {
				b.t.Errorf("step %d: %+v, %v, want %s", n, res, err, want)
			}
		}
	case "show":
		res := b.window(s.Key, 100_000)
		got := []string{}
		for _, raw := range res.Messages {
			m, err := message.Read(raw)
			if err != nil {
				b.t.Fatal(err)
			}
			var text strings.Builder
			for _, block := range m.Blocks {
				text.WriteString(block.Text)
			}
			got = append(got, text.String())
		}
		if diff := cmp.Diff(s.Texts, got); diff != "" || res.Epoch != s.Epoch {
			b.t.Errorf("step %d: epoch %d, want %d; window (-host +service):\n%s", n, res.Epoch, s.Epoch, diff)
		}
	}
}
