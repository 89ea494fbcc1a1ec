package compact

import (
	"context"
	"testing"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/message"
)

type timedSource []SourceMessage

func (s timedSource) Messages(context.Context, []int64) ([]SourceMessage, error) { return s, nil }

func (timedSource) SummaryTexts(context.Context, []int64) ([]SummaryText, error) { return nil, nil }

func TestTimestampIsTheNewestMessages(t *testing.T) {
	t.Parallel()
	recorded := time.UnixMilli(9000)
	at := func(ms int64) SourceMessage {
		return SourceMessage{Message: message.Message{Timestamp: ms}, RecordedAt: recorded}
	}
	tests := []struct {
		name string
		src  timedSource
		want int64
	}{
		{"its own", timedSource{at(100), at(200)}, 200},
		{"not the latest", timedSource{at(300), at(200)}, 200},
		{"an imported one without time before it", timedSource{at(0), at(200)}, 200},
		{"recorded", timedSource{at(300), at(0)}, 9000},
		{"none at all", timedSource{{}}, 0},
	}
	for _, tt := range tests {
		r := runner{RunInput: RunInput{Source: tt.src}}
		var out Summary
		err := r.readMessages(t.Context(), &Step{SourceSeqs: make([]int64, len(tt.src))}, &summarize.Request{}, &out)
		if err != nil || out.Timestamp != tt.want {
			t.Errorf("%s: %d, %v, want %d", tt.name, out.Timestamp, err, tt.want)
		}
	}
}
