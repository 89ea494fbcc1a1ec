package tokens_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/transcript"
)

// TestWindowsOfRealSessions sums estimates over growing windows of real
// sessions: no sum is under the o200k_base count of what the window shows, and
// no single text is by more than StatedError.
func TestWindowsOfRealSessions(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS names no folder of transcripts")
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"pi", "openclaw", "claude-code", "tau-bench", "swe-agent"} {
		files, err := filepath.Glob(filepath.Join(dir, kind, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", kind, err)
		}
		for _, name := range files {
			t.Run(kind+"/"+filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				f, err := os.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				estimated, truth, texts, textTruth := 0, 0, 0, 0
				seen := map[string]bool{} // runs repeat their system message
				_, err = transcript.Read(context.Background(), name, f, func(e transcript.Entry) error {
					if e.Message == nil {
						return nil
					}
					m, err := message.Read(e.Message)
					if err != nil {
						return err
					}
					if seen[string(e.Message)] {
						return nil
					}
					seen[string(e.Message)] = true
					estimated += tokens.Message(m)
					for _, b := range m.Blocks {
						for _, s := range []string{b.Text, b.Call.Name, b.Call.Args} {
							// The reference tokenizer loses DEL.
							n, err := codec.Count(strings.ReplaceAll(s, "\x7f", "?"))
							if err != nil {
								return err
							}
							got := tokens.Text(s)
							if got*100 < n*(100-tokens.StatedError) {
								t.Errorf("line %d: estimate %d, truth %d of %.60q…", e.Line, got, n, s)
							}
							truth += n
							texts += got
							textTruth += n
						}
					}
					if estimated < truth {
						t.Errorf("line %d: the window's estimate is %d, the truth %d", e.Line, estimated, truth)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if texts > textTruth*105/100 {
					t.Errorf("texts: estimate %d, truth %d: over by more than 5%%", texts, textTruth)
				}
				t.Logf("window: estimate %d, truth %d; texts alone %d", estimated, truth, texts)
			})
		}
	}
}
