package engine

import (
	"slices"
	"strings"

	"github.com/engined/engined/internal/events"
)

// guidance tells the model how to look behind the summaries, naming only the
// tools it has. Without summaries or tools there is nothing to tell.
func guidance(tools []string, state events.State) string {
	if len(state.Live) == 0 {
		return ""
	}
	var lines []string
	for _, t := range []struct{ name, use string }{
		{"engined_grep", "finds words in the whole history"},
		{"engined_describe", "says what a summary covers"},
		{"engined_expand", "shows what is behind a summary"},
	} {
		if slices.Contains(tools, t.name) {
			lines = append(lines, "- `"+t.name+"` "+t.use)
		}
	}
	if lines == nil {
		return ""
	}
	return "Older parts of this conversation are shown as summaries. When a detail matters, look it up:\n" + strings.Join(lines, "\n")
}
