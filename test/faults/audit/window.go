package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Window is what a node answered a model is to see, of a session in the OpenAI
// dialect.
type Window struct {
	Messages        []json.RawMessage `json:"messages"`
	EstimatedTokens int               `json:"estimatedTokens"`
	OverBudget      json.RawMessage   `json:"overBudget"`
	Head            int64             `json:"head"`
	Epoch           int64             `json:"epoch"`
}

// CheckWindow tells what is wrong with a window by itself: that it does not
// fit, or that a strict provider would refuse it.
func CheckWindow(w Window, budget int) []string {
	var broken []string
	if w.EstimatedTokens > budget || len(w.OverBudget) > 0 {
		broken = append(broken, fmt.Sprintf("a window of %d tokens in a budget of %d, over budget: %s", w.EstimatedTokens, budget, w.OverBudget))
	}
	var open []string // calls that wait for their results
	for i, raw := range w.Messages {
		var m struct {
			Role      string `json:"role"`
			ToolID    string `json:"tool_call_id"`
			ToolCalls []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return append(broken, fmt.Sprintf("message %d of a window cannot be read: %v", i, err))
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolID)
			if at < 0 {
				broken = append(broken, fmt.Sprintf("message %d of a window answers no open call: %.80s", i, raw))
				continue
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			broken = append(broken, fmt.Sprintf("message %d of a window comes before the results of %v", i, open))
		}
		open = open[:0]
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		broken = append(broken, fmt.Sprintf("a window ends with the calls %v unanswered", open))
	}
	return broken
}

// CheckWindowOf holds a window against the log it was made from: summaries
// first, then messages as they are stored, in order, up to the newest.
func CheckWindowOf(w Window, log []Row) []string {
	var broken []string
	at := make(map[string]int64, len(log))
	newest := ""
	for _, row := range log {
		if row.Message != nil {
			at[string(row.Message)], newest = row.Seq, string(row.Message)
		}
	}
	last := int64(0)
	for i, raw := range w.Messages {
		seq, stored := at[string(raw)]
		switch {
		case !stored && (last > 0 || !summary(string(raw))):
			broken = append(broken, fmt.Sprintf("message %d of a window is not in the log: %.80s", i, raw))
		case stored && seq <= last:
			broken = append(broken, fmt.Sprintf("a window shows seq %d behind %d", seq, last))
		case stored:
			last = seq
		}
	}
	if n := len(w.Messages); newest != "" && (n == 0 || string(w.Messages[n-1]) != newest) {
		broken = append(broken, "a window does not end with the newest message")
	}
	return broken
}

// summary tells whether a message stands for earlier ones, in either dialect.
func summary(text string) bool {
	return strings.Contains(text, "<summary>") || strings.Contains(text, `"role":"compactionSummary"`)
}
