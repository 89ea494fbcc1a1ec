package retrieval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/transcript"
)

// copies is how often the transcripts are stored for a benchmark, each time
// under other keys.
const copies = 10

// BenchmarkSearch stores real transcripts many times over, indexes them (told
// as events/s) and searches.
func BenchmarkSearch(b *testing.B) {
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		b.Skip("ENGINED_TRANSCRIPTS does not name a directory of transcripts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "pi", "*.jsonl"))
	if err != nil || len(files) == 0 {
		b.Skip("there are no transcripts in " + dir + "/pi")
	}
	s := setup(b)
	messages := 0
	for _, f := range files {
		all := readMessages(b, f)
		for n := range copies {
			for from := 0; from < len(all); from += 500 {
				part := all[from:min(len(all), from+500)]
				_, err := s.engine.IngestBatch(b.Context(), contextengine.IngestBatchParams{Session: on("t", fmt.Sprintf("%s:%d", filepath.Base(f), n)), Messages: part})
				if err != nil {
					b.Fatal(err)
				}
				messages += len(part)
			}
		}
	}
	began := time.Now()
	for done := 0; done < messages; {
		n, err := s.indexer.Index(b.Context(), "t", time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		done += n
	}
	b.Logf("%d messages indexed in %s: %.0f/s", messages, time.Since(began).Round(time.Millisecond), float64(messages)/time.Since(began).Seconds())
	for name, r := range map[string]retrieval.Request{
		"rare":     {Query: "handleResumeSession"},
		"phrase":   {Query: `"session.switchSession"`},
		"common":   {Query: "the session"},
		"prefix":   {Query: "handle*"},
		"recent":   {Query: "session file", Sort: retrieval.SortRecent},
		"question": {Query: "how is the session switched when a user resumes?", Match: retrieval.MatchAny},
		"session":  {Query: "how is the session switched when a user resumes?", Match: retrieval.MatchAny, SessionKey: filepath.Base(files[0]) + ":1"},
		"regex":    {Query: `func handle\w+Session\(`, Regex: true},
	} {
		r.Tenant, r.Limit = "t", 20
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a, err := s.Search(context.WithoutCancel(b.Context()), r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(a.Hits)), "hits")
			}
		})
	}
}

func readMessages(b testing.TB, path string) []json.RawMessage {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var out []json.RawMessage
	_, err = transcript.Read(b.Context(), path, f, func(e transcript.Entry) error {
		if e.Message != nil {
			out = append(out, e.Message)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return out
}
