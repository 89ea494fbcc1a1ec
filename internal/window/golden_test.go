package window

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

var update = flag.Bool("update", false, "write the golden windows anew")

func TestGoldenWindows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openclaw-receipts", "pi-aborts"} {
		for _, budget := range []int{100, 1500, 4000, 100000} {
			t.Run(fmt.Sprintf("%s-%d", name, budget), func(t *testing.T) {
				t.Parallel()
				l, bodies := readTranscript(t, filepath.Join("testdata", name+".jsonl"))
				in := l.within(budget)
				in.Dialect = message.OpenClaw
				in.Summaries = []Summary{{Seq: 1000, Tokens: 60, Level: 1, Timestamp: 1700000000000, TokensBefore: 9000}}
				p := Build(in)
				if err := check(in, p); err != nil {
					t.Fatal(err)
				}
				rendered, err := p.Render(Source{
					Bodies: bodies, Summaries: map[int64]string{1000: "They spoke of <b>receipts</b>."}, Estimate: roughly,
				})
				if err != nil {
					t.Fatal(err)
				}
				golden(t, describe(p, rendered))
			})
		}
	}
}

// describe writes a plan and what it rendered to, a line each.
func describe(p Plan, rendered []json.RawMessage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %s fingerprint %s tokens %d\n", p.EpochLabel, p.Fingerprint, p.Tokens)
	if p.Over != nil {
		fmt.Fprintf(&b, "over: needs %d of %d\n", p.Over.Needed, p.Over.Budget)
	}
	for i, it := range p.Items {
		fmt.Fprintf(&b, "%s %d: %d tokens, cut to %d of %d, %d bytes, %s\n",
			it.Kind, it.Seq, it.Tokens, it.CutTo, it.Whole, len(rendered[i]), it.Reason)
	}
	for _, lo := range p.LeftOut {
		fmt.Fprintf(&b, "left out %s %d: %d tokens, %s\n", lo.Kind, lo.Seq, lo.Tokens, lo.Reason)
	}
	return b.String()
}

func golden(t *testing.T, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", filepath.Base(t.Name())+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("golden window (-want +got):\n%s", diff)
	}
}
