package config

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// ModelWindow is what a model has room for, what is kept of it, and when its
// sessions are compacted. Zero is what the entry does not tell.
type ModelWindow struct {
	Pattern         string
	Tokens, Reserve int
	Threshold, Soft float64
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

// parseModelWindow reads MODEL=WINDOW:RESERVE:THRESHOLD:SOFT. All but the first
// two may be missing, and the window may be empty where there is a threshold.
func parseModelWindow(entry string) (ModelWindow, error) {
	pattern, values, ok := strings.Cut(entry, "=")
	w := ModelWindow{Pattern: strings.TrimSpace(pattern)}
	parts := strings.Split(values, ":")
	_, bad := path.Match(w.Pattern, "")
	if !ok || w.Pattern == "" || bad != nil || len(parts) > 4 || values == "" {
		return w, fmt.Errorf("%q is not MODEL=WINDOW:RESERVE:THRESHOLD:SOFT, such as claude-*=200000:16000 or claude-*=200000:16000:0.9", entry)
	}
	parts = append(parts, "", "", "")[:4]
	var err error
	if w.Tokens, err = tokensIn(parts[0]); err != nil {
		return w, fmt.Errorf("%q: the window is not a number of tokens above 0", entry)
	}
	if w.Reserve, err = tokensIn(parts[1]); err != nil && parts[1] != "0" {
		return w, fmt.Errorf("%q: the reserve is not a number of tokens", entry)
	}
	if w.Threshold, err = shareIn(parts[2]); err != nil {
		return w, fmt.Errorf("%q: the threshold is not a part of the budget between 0.1 and 1", entry)
	}
	if w.Soft, err = shareIn(parts[3]); err != nil || w.Soft > w.Threshold {
		return w, fmt.Errorf("%q: the soft threshold is not a part of the budget between 0.1 and the threshold", entry)
	}
	if w.Tokens == 0 && (w.Threshold == 0 || w.Reserve > 0) || w.Reserve > 0 && w.Reserve >= w.Tokens {
		return w, fmt.Errorf("%q: the window must be above 0, the reserve below it", entry)
	}
	return w, nil
}

// tokensIn reads a number of tokens, 0 where there is none.
func tokensIn(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		err = strconv.ErrRange
	}
	return n, err
}

// shareIn reads a part of the budget, 0 where there is none.
func shareIn(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && !(f >= 0.1 && f <= 1) {
		err = strconv.ErrRange
	}
	return f, err
}
