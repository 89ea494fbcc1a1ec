package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

// leastMessages of a transcript that is long enough to be compacted.
const leastMessages = 200

// readTranscripts reads the long transcripts (*.jsonl) of a directory.
func readTranscripts(ctx context.Context, dir string) ([]history, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []history
	for _, path := range files {
		h, err := readTranscript(ctx, path)
		if err != nil {
			return nil, err
		}
		if len(h.messages) >= leastMessages {
			out = append(out, h)
		}
	}
	return out, nil
}

func readTranscript(ctx context.Context, path string) (history, error) {
	h := history{key: "transcript:" + strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	models := map[string]int{}
	_, err = transcript.Read(ctx, path, f, func(e transcript.Entry) error {
		m, err := message.Read(e.Message)
		if err != nil {
			return nil //nolint:nilerr // an entry without a message, or a broken one
		}
		h.messages = append(h.messages, e.Message)
		h.said = append(h.said, textOf(&m))
		if m.Model != "" {
			models[m.Model]++
			if models[m.Model] > models[h.model] {
				h.model = m.Model
			}
		}
		return nil
	})
	return h, err
}

func textOf(m *message.Message) string {
	var b strings.Builder
	for i := range m.Blocks {
		if m.Blocks[i].Kind != message.Thinking {
			b.WriteString(m.Blocks[i].Text + "\n" + m.Blocks[i].Call.Args + "\n")
		}
	}
	return b.String()
}

// identifier matches what must be told exactly or not at all: URLs, paths with
// an extension, hashes, versions, names of several parts.
var identifier = regexp.MustCompile(`https?://[^\s"'<>)\]}\x60\\]+|(?:[\w.@-]+/)+[\w-]+\.[A-Za-z]\w{0,5}\b|\b[0-9a-f]{7,40}\b|\bv?\d+\.\d+\.\d+\b|\b[a-z]+(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z0-9]+(?:_[a-z0-9]+){2,}\b`)

func identifiers(texts []string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, t := range texts {
		for _, id := range identifier.FindAllString(t, -1) {
			out[id] = struct{}{}
		}
	}
	return out
}
