package window

import (
	"encoding/json"
	"fmt"

	"github.com/engined/engined/internal/message"
)

// Source is what a plan is rendered from.
type Source struct {
	// Bodies are the stored bytes of the messages in Plan.Items, by seq.
	Bodies map[int64][]byte
	// Summaries are the texts of Plan.Summaries, by seq.
	Summaries map[int64]string
	// Estimate is the uncalibrated estimate of a text's tokens, the same that
	// the facts were made with. Needed where an item is cut.
	Estimate func(string) int
	// Seq names a message in the mark of a cut one; nil where messages are named
	// as the plan does.
	Seq func(int64) int64
}

// MissingBodyError: the source lacks what the plan shows.
type MissingBodyError struct{ Seq int64 }

func (e *MissingBodyError) Error() string { return fmt.Sprintf("window: no body for seq %d", e.Seq) }

// Render puts the window together: stored bytes as they are, results cut or
// taken out where the plan says so, summaries in the session's dialect.
func (p Plan) Render(src Source) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(p.Items))
	summary := 0
	for _, it := range p.Items {
		if it.Kind == KindNotice {
			out = append(out, encode(userMessage{"user", opening}))
			continue
		}
		if it.Kind == KindSummary {
			text, ok := src.Summaries[it.Seq]
			if !ok {
				return nil, &MissingBodyError{it.Seq}
			}
			out = append(out, RenderSummary(p.Dialect, p.Summaries[summary], p.standInFor(text, it, src.Estimate)))
			summary++
			continue
		}
		body, ok := src.Bodies[it.Seq]
		if !ok {
			return nil, &MissingBodyError{it.Seq}
		}
		var err error
		if it.WithoutResults {
			if body, err = message.WithoutResults(body); err != nil {
				return nil, fmt.Errorf("window: results of seq %d: %w", it.Seq, err)
			}
		}
		if it.CutTo > 0 {
			named := it
			if src.Seq != nil {
				named.Seq = src.Seq(it.Seq)
			}
			if body, err = cutBody(body, named, src.Estimate); err != nil {
				return nil, fmt.Errorf("window: cut seq %d: %w", it.Seq, err)
			}
		}
		out = append(out, body)
	}
	return out, nil
}

// cutBody cuts a result or a note to it.CutTo tokens. The planner counts whole
// messages and CutResult only their texts, so what a message costs beside its
// texts is taken off first.
func cutBody(body []byte, it Item, est func(string) int) ([]byte, error) {
	m, err := message.Read(body)
	if err != nil {
		return nil, err
	}
	texts, answers := 0, 0
	if m.Role == message.Note {
		texts, answers = message.CuttableCost(body, est)
	}
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == message.ToolResult {
			texts += est(b.Text)
			answers++
		}
	}
	around := max(it.Whole-texts, 0)
	switch it.Prune {
	case PruneClear:
		return message.CutResult(body, it.Seq, 0, est)
	case PruneTrim:
		return message.TrimResult(body, it.Seq, max(it.CutTo-around, 64*answers), est)
	case PruneOff:
	}
	return message.CutResult(body, it.Seq, max(it.CutTo-around, 64*answers), est)
}
