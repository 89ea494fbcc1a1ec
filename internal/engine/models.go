package engine

import (
	"path"
	"strings"
)

// ModelWindow is what a model has room for. It gives sessions a budget whose
// host tells none.
type ModelWindow struct {
	// Pattern is a model's name, without regard to case; * stands for any run of
	// characters but a slash. A name with a provider before a slash also matches
	// without it.
	Pattern string
	// Tokens is the model's context window, Reserve what is kept of it for the
	// answer and for what the host adds (system prompt, tools).
	Tokens, Reserve int
}

// modelBudget is the budget for a model: its window without the reserve, by the
// first entry that matches; 0 for a model that none knows.
func (c Config) modelBudget(model string) int {
	if model == "" {
		return 0
	}
	name := strings.ToLower(model)
	_, bare, _ := strings.Cut(name, "/")
	for _, w := range c.Models {
		pattern := strings.ToLower(w.Pattern)
		for _, n := range []string{name, bare} {
			if ok, err := path.Match(pattern, n); ok && err == nil {
				return max(w.Tokens-w.Reserve, 1)
			}
		}
	}
	return 0
}
