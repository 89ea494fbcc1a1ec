package window

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/engined/engined/internal/message"
)

// roughly estimates tokens without a vocabulary, so that golden windows do not
// move with the estimator.
func roughly(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

func roughlyMessage(m message.Message) int {
	n := 8
	for i := range m.Blocks {
		b := &m.Blocks[i]
		n += roughly(b.Text) + roughly(b.Call.Name+b.Call.Args) + roughly(b.Call.ID+b.ResultOf)
		if b.Kind == message.Image {
			n += 1500
		}
	}
	return n
}

// readTranscript reads the messages of a host transcript, one entry a line. It
// skips lines that are no message.
func readTranscript(t testing.TB, path string) (*testLog, map[int64][]byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, bodies := &testLog{}, map[int64][]byte{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var entry struct{ Message json.RawMessage }
		if json.Unmarshal(lines.Bytes(), &entry) != nil || len(entry.Message) == 0 {
			continue
		}
		m, err := message.Read(entry.Message)
		if err != nil {
			continue
		}
		bodies[l.add(m.Facts(roughlyMessage))] = entry.Message
	}
	return l, bodies
}
