package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
)

// TestSummariesHaveTheTimeOfTheirNewestMessage: where no message says when it
// was said, the time it was recorded counts, and it stays.
func TestSummariesHaveTheTimeOfTheirNewestMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 40)...)
	if res := b.compact("k", 8000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	first := func(res contextengine.AssembleResult) int64 {
		var m struct {
			Role      string
			Timestamp int64
		}
		if err := json.Unmarshal(res.Messages[0], &m); err != nil {
			t.Fatal(err)
		}
		if m.Role != "compactionSummary" {
			t.Fatalf("the window begins with %s", res.Messages[0])
		}
		return m.Timestamp
	}
	at := first(b.window("k", 8000))
	if at < time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() {
		t.Errorf("timestamp %d", at)
	}
	if again := first(node(t, b.url()).window("k", 8000)); again != at {
		t.Errorf("timestamp %d, then %d", at, again)
	}
}
