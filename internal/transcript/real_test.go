package transcript_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

// counts is what a file holds, as another program counted it.
type counts struct{ Messages, Sessions, Side, Broken int }

// TestReadEverything reads the large transcripts where they are at hand.
func TestReadEverything(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENGINED_TRANSCRIPTS")
	if dir == "" {
		t.Skip("ENGINED_TRANSCRIPTS names no folder of transcripts")
	}
	for name, want := range map[string]counts{
		"pi/before-compaction.jsonl": {990, 1, 0, 0},
		"pi/large-session.jsonl":     {914, 1, 0, 0},
		"openclaw/demo33-gemini-singapore-web-plan-task-105-13-singapore-web-plan.attempt0.jsonl":                   {156, 1, 0, 0},
		"openclaw/demo34-qwen-week32-gui-task-105-02-week32-receipts-gui-calc-writer.attempt0.jsonl":                {195, 1, 0, 0},
		"openclaw/demo35-gpt41-iwatch-web-compare-task-105-14-iwatch-web-compare.attempt0.jsonl":                    {121, 1, 0, 0},
		"openclaw/demo36-sonnet-receipt-packet-gui-task-105-36-receipt-packet-gui-audit.attempt0.jsonl":             {237, 1, 0, 0},
		"openclaw/demo37-kimi-sketch-python-org-task-105-27-sketch-ui-replica.attempt0.jsonl":                       {157, 1, 0, 0},
		"openclaw/demo39-gpt54-event-materials-fail-task-105-05-event-materials-gui-inventory-slack.attempt0.jsonl": {117, 1, 0, 0},
		"claude-code/log-edge_cases.jsonl":                                  {13, 2, 0, 4},
		"claude-code/log-todowrite_examples.jsonl":                          {11, 1, 0, 0},
		"claude-code/simonw-sample_session.jsonl":                           {7, 1, 0, 0},
		"claude-code/viewer-5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl":     {53, 3, 22, 0},
		"claude-code/viewer-fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl":     {437, 6, 405, 0},
		"shapes/claude-real-shapes.jsonl":                                   {10, 5, 1, 0},
		"shapes/pi-real-shapes.jsonl":                                       {21, 1, 0, 0},
		"lineage/claude-code_claude-normalization-main.jsonl":               {12, 3, 1, 0},
		"lineage/claude-code_normalization-lineage-subagent-acompact.jsonl": {2, 1, 2, 0},
		"swe-agent/marshmallow-1867-fc-from-source.traj":                    {28, 1, 0, 0},
		"swe-agent/pydicom-1458.traj":                                       {26, 1, 0, 0},
		"tau-bench/gpt-4o-airline.json":                                     {5308, 200, 0, 0},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var got counts
			sessions := map[string]bool{}
			report, err := transcript.Read(context.Background(), name, f, func(e transcript.Entry) error {
				sessions[e.Session] = true
				if e.Sidechain {
					got.Side++
				}
				if e.ID == "" {
					t.Errorf("line %d has no id", e.Line)
				}
				if err := message.Check(e.Message, message.Limits{}); err != nil {
					t.Errorf("line %d: %v", e.Line, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got.Messages, got.Sessions, got.Broken = report.Messages, len(sessions), len(report.Broken)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}
