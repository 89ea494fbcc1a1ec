package config

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// ModelWindow is what a model has room for, and what is kept of it.
type ModelWindow struct {
	Pattern         string
	Tokens, Reserve int
}

// ModelWindows are the entries of model-windows, in their order.
func (c Config) ModelWindows() []ModelWindow {
	out := make([]ModelWindow, 0, len(c.ModelWindowList))
	for _, entry := range c.ModelWindowList {
		if w, err := parseModelWindow(entry); err == nil {
			out = append(out, w)
		}
	}
	return out
}

func checkModelWindow(entry string) error {
	_, err := parseModelWindow(entry)
	return err
}

func parseModelWindow(entry string) (ModelWindow, error) {
	pattern, numbers, ok := strings.Cut(entry, "=")
	window, reserve, _ := strings.Cut(numbers, ":")
	w := ModelWindow{Pattern: strings.TrimSpace(pattern)}
	_, bad := path.Match(w.Pattern, "")
	var err error
	if w.Tokens, err = strconv.Atoi(window); err != nil || !ok || w.Pattern == "" || bad != nil {
		return w, fmt.Errorf("%q is not MODEL=WINDOW:RESERVE, such as claude-*=200000:16000", entry)
	}
	if reserve != "" {
		if w.Reserve, err = strconv.Atoi(reserve); err != nil {
			return w, fmt.Errorf("%q: the reserve is not a number of tokens", entry)
		}
	}
	if w.Tokens < 1 || w.Tokens > math.MaxInt32 || w.Reserve < 0 || w.Reserve >= w.Tokens {
		return w, fmt.Errorf("%q: the window must be above 0, the reserve below it", entry)
	}
	return w, nil
}
