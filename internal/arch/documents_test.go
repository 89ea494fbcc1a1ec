package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// declaredTests are the tests of all packages, as documents name them:
// package.TestName.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, p := range list(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, m := range declared.FindAllSubmatch(read(t, f), -1) {
				tests[path.Base(p.ImportPath)+"."+string(m[1])] = true
			}
		}
	}
	return tests
}

// pluginTests are the tests of the OpenClaw plugin, as documents name them.
func pluginTests(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../plugins/openclaw/test/*.test.ts")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^test\("([^"]+)"`)
	for _, f := range files {
		for _, m := range declared.FindAllSubmatch(read(t, f), -1) {
			tests["openclaw: "+string(m[1])] = true
		}
	}
	return tests
}

var named = regexp.MustCompile("`(\\w+\\.Test\\w+|openclaw: [^`]+)`")

// holdNamed fails for every test that a document names and nobody declares, and
// where it names fewer than it should: the pattern would be at fault.
func holdNamed(t *testing.T, doc string, tests map[string]bool, least int) {
	t.Helper()
	all := named.FindAllSubmatch(read(t, "../../"+doc), -1)
	if len(all) < least {
		t.Fatalf("%s names %d tests", doc, len(all))
	}
	for _, m := range all {
		if name := string(m[1]); !tests[name] {
			t.Errorf("%s names %s, which does not exist", doc, name)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
