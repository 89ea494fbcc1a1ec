package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is one key of the file, as text for Value.Set.
type entry struct {
	text string
	line int
}

// readFile reads the flat mapping of engined.yaml.
func readFile(path string) (map[string]entry, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // empty, or comments only
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: line %d: not a mapping of settings", path, root.Line)
	}
	known := make(map[string]bool)
	for _, o := range Options() {
		known[o.Name] = true
	}
	out := make(map[string]entry)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if !known[key.Value] {
			return nil, fmt.Errorf("%s: line %d: unknown key %q%s", path, key.Line, key.Value, guess(key.Value))
		}
		if _, twice := out[key.Value]; twice {
			return nil, fmt.Errorf("%s: line %d: %s stands there twice", path, key.Line, key.Value)
		}
		text, err := flat(value)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %s: %w", path, value.Line, key.Value, err)
		}
		if value.Tag != "!!null" {
			out[key.Value] = entry{text, key.Line}
		}
	}
	return out, nil
}

// flat is a scalar as written, or a list of scalars joined by commas.
func flat(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		parts := make([]string, len(n.Content))
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
				return "", errors.New("a list holds plain values without commas")
			}
			parts[i] = item.Value
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("neither a value nor a list of values")
}

// guess offers the known key that differs only in signs and letter case, or
// in one letter too many or too few.
func guess(key string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(s))
	}
	want := plain(key)
	for _, o := range Options() {
		have := plain(o.Name)
		if have == want || oneOff(have, want) || oneOff(want, have) {
			return fmt.Sprintf("; did you mean %q?", o.Name)
		}
	}
	return ""
}

// oneOff reports whether long becomes short by leaving one byte out.
func oneOff(long, short string) bool {
	if len(long) != len(short)+1 {
		return false
	}
	for i := range long {
		if long[:i]+long[i+1:] == short {
			return true
		}
	}
	return false
}
