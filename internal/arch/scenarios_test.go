package arch

import (
	"maps"
	"regexp"
	"strconv"
	"testing"
)

// TestTheScenariosNameTestsThatExist, each id stands once, in order, and each
// row names a test.
func TestTheScenariosNameTestsThatExist(t *testing.T) {
	t.Parallel()
	const doc = "docs/scenarios.md"
	tests := declaredTests(t)
	maps.Copy(tests, pluginTests(t))
	holdNamed(t, doc, tests, 150)

	rows := regexp.MustCompile(`(?m)^\| ([A-S])(\d+) \|.*$`).FindAllSubmatch(read(t, "../../"+doc), -1)
	if len(rows) < 132 {
		t.Errorf("%s has %d rows; a row that does not apply any more says so and stays", doc, len(rows))
	}
	letter, last := "A", 0
	for _, r := range rows {
		n, err := strconv.Atoi(string(r[2]))
		if err != nil {
			t.Fatal(err)
		}
		if n <= last || string(r[1]) < letter {
			t.Errorf("%s%d stands behind %s%d", r[1], n, letter, last)
		}
		letter, last = string(r[1]), n
		if !named.Match(r[0]) {
			t.Errorf("%s%d names no test", r[1], n)
		}
	}
}
