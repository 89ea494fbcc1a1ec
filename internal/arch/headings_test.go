package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHeadingsStandOnce: a page that has a section twice was merged wrongly.
func TestHeadingsStandOnce(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range append(pages, "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		seen, code := map[string]bool{}, false
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code || !strings.HasPrefix(line, "## ") {
				continue
			}
			if seen[line] {
				t.Errorf("%s has %q twice", filepath.Base(page), strings.TrimSpace(line))
			}
			seen[line] = true
		}
	}
}
