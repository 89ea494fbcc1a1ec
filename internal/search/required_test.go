package search_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/search"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`handle\w+Session\(\)`: "Session()", "(?i)abc": "", "a|b": "", "(abc)+d": "abc", "(abc)*d": "d", "(?:abc){2,3}": "abc",
		"^x$": "x", "[ab]": "", "": "", "(": "", "静默.*播": "静默", `\x00`: "\x00", "(?i:A)bc": "bc", "ab?c": "a",
	} {
		if got := search.Required(expr); got != want {
			t.Errorf("%q requires %q, not %q", expr, got, want)
		}
	}
}

func TestWhatMatchesHoldsWhatIsRequired(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "(", ")", "|", "*", "+", "?", "{2}", "[ab]", ".", "^", "$", "(?i)", "(?:", "k", "K"})
	rapid.Check(t, func(rt *rapid.T) {
		expr := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "expression"), "")
		re, err := regexp.Compile(expr)
		if err != nil {
			return
		}
		text := rapid.StringMatching("[abkK]{0,9}").Draw(rt, "text")
		if need := search.Required(expr); re.MatchString(text) && !strings.Contains(text, need) {
			rt.Fatalf("%q matches %q, which does not hold %q", expr, text, need)
		}
	})
}
