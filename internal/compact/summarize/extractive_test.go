package summarize

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// estimate is a rough count: four Latin letters or one ideograph are a token,
// the frame 55.
func estimate(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return 55 + (n+3)/4
}

func readLines(t testing.TB, name string) []Line {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []Line
	if err := json.Unmarshal(b, &lines); err != nil {
		t.Fatal(err)
	}
	return lines
}

func requestOf(lines []Line, limit int) Request {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text)
	}
	return Request{Level: 1, Lines: lines, MaxTokens: limit, SourceTokens: estimate(b.String()) + 4*len(lines), Estimate: estimate}
}

func summarize(t testing.TB, req Request) string {
	t.Helper()
	res, err := Extractive{}.Summarize(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := Accept(req, res); err != nil {
		t.Fatalf("own text refused: %v\n%s", err, res.Text)
	}
	return res.Text
}

func TestExtractiveGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pi", "japanese", "airline"} {
		for size, limit := range map[string]int{"large": 1200, "small": 200} {
			t.Run(name+"-"+size, func(t *testing.T) {
				t.Parallel()
				got := summarize(t, requestOf(readLines(t, name), limit)) + "\n"
				golden := filepath.Join("testdata", name+"-"+size+".golden")
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		}
	}
}
