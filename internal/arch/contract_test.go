package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTheContractNamesTestsThatExist: a rule whose test was renamed or removed
// must not look kept.
func TestTheContractNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, p := range list(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllSubmatch(src, -1) {
				tests[path.Base(p.ImportPath)+"."+string(m[1])] = true
			}
		}
	}
	named := regexp.MustCompile("`(\\w+\\.Test\\w+)`").FindAllSubmatch(raw, -1)
	if len(named) < 50 {
		t.Fatalf("docs/contract.md names %d tests", len(named))
	}
	for _, m := range named {
		if name := string(m[1]); !tests[name] {
			t.Errorf("docs/contract.md names %s, which does not exist", name)
		}
	}
}
