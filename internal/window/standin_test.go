package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// written makes up a summary's text in sections, and the tokens of its message.
func written(t *rapid.T, seq int64) (text string, tokens int) {
	var b strings.Builder
	word := rapid.SampledFrom([]string{"release", "決定する", "/srv/app/main.go", "x"})
	for _, heading := range []string{"## Decisions", "## Open TODOs", "## Exact identifiers", "## Timeline"} {
		if rapid.Bool().Draw(t, "section") {
			fmt.Fprintln(&b, heading)
		}
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			fmt.Fprintf(&b, "- [%d] %s\n", seq, strings.Repeat(word.Draw(t, "word")+" ", rapid.IntRange(1, 60).Draw(t, "words")))
		}
	}
	text = strings.TrimSpace(b.String())
	return text, summaryTokens(text)
}

func summaryTokens(text string) int {
	return perFour(string(RenderSummary(message.OpenAI, Summary{}, text)))
}

// perFour is an estimator without rounding surprises across parts.
func perFour(s string) int { return (len(s) + 3) / 4 }

func TestSummariesAreShortenedBeforeAnyLeavesAndTheRootIsLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &testLog{}
		for range 40 {
			l.user(50)
			l.say(50)
		}
		in := l.within(rapid.OneOf(rapid.IntRange(300, 3900), rapid.IntRange(3900, 12_000)).Draw(t, "budget"))
		in.Dialect = message.OpenAI
		texts := map[int64]string{}
		for i := range rapid.IntRange(1, 12).Draw(t, "summaries") {
			s := Summary{Seq: int64(1001 + i), Level: rapid.IntRange(1, 3).Draw(t, "level")}
			texts[s.Seq], s.Tokens = written(t, s.Seq)
			in.Summaries = append(in.Summaries, s)
		}
		p := Build(in)
		if err := check(in, p); err != nil {
			t.Fatal(err)
		}
		root := slices.MaxFunc(in.Summaries, func(a, b Summary) int {
			if a.Level != b.Level {
				return a.Level - b.Level
			}
			return int(b.Seq - a.Seq)
		})
		shown := map[int64]Item{}
		for _, it := range p.Items {
			if it.Kind == KindSummary {
				shown[it.Seq] = it
			}
		}
		var gone []Summary
		for _, s := range in.Summaries {
			if _, ok := shown[s.Seq]; !ok {
				gone = append(gone, s)
			}
		}
		for _, s := range in.Summaries {
			it, ok := shown[s.Seq]
			if ok && len(gone) > 0 && it.CutTo == 0 && s.Tokens > standIn+noticeTokens && s.Tokens > s.Tokens/5+noticeTokens {
				t.Errorf("%d is whole with %d tokens while %d are not shown", s.Seq, s.Tokens, len(gone))
			}
			if ok && s.Seq != root.Seq {
				for _, g := range gone {
					if g.Level > s.Level || g.Level == s.Level && g.Seq > s.Seq {
						t.Errorf("%d of level %d is not shown while %d of level %d is", g.Seq, g.Level, s.Seq, s.Level)
					}
				}
			}
		}
		_, rootShown := shown[root.Seq]
		if len(gone) > 0 && len(gone) < len(in.Summaries) && !rootShown {
			t.Errorf("the root %d left before others", root.Seq)
		}
		if rootShown && shown[root.Seq].Notice != (len(gone) > 0) {
			t.Errorf("%d are not shown, told: %v", len(gone), shown[root.Seq].Notice)
		}
		checkStandIns(t, p, texts, gone)
	})
}

// checkStandIns reads the window: what is shown of summaries is no larger than
// planned, points to the whole, and names what is not there.
func checkStandIns(t *rapid.T, p Plan, texts map[int64]string, gone []Summary) {
	bodies := map[int64][]byte{}
	for _, it := range p.Items {
		bodies[it.Seq] = []byte(`{"role":"user","content":"x"}`)
	}
	msgs, err := p.Render(Source{Bodies: bodies, Summaries: texts, Estimate: perFour})
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range p.Items {
		if it.Kind != KindSummary {
			continue
		}
		got := string(msgs[i])
		if n := perFour(got); n > it.Tokens {
			t.Errorf("%d takes %d tokens, planned are %d: %s", it.Seq, n, it.Tokens, got)
		}
		if it.CutTo > 0 != strings.Contains(got, fmt.Sprintf("expand summary %d for the rest", it.Seq)) {
			t.Errorf("%d is cut to %d and says %s", it.Seq, it.CutTo, got)
		}
		for n, g := range gone {
			if it.Notice && n < namedAtMost && !strings.Contains(got, fmt.Sprint(g.Seq)) {
				t.Errorf("%d is not named: %s", g.Seq, got)
			}
		}
	}
}

func TestExtractTakesALineOfEverySectionFirst(t *testing.T) {
	t.Parallel()
	text := "## Decisions\n- keep it\n- and that\n## Open TODOs\n- none\n## Timeline\n- [3] user: hello\n- [4] user: again"
	if got, want := extract(text, perFour("## Decisions\n- keep it\n## Timeline\n- [3] user: hello")+6, perFour), "## Decisions\n- keep it\n## Timeline\n- [3] user: hello"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := extract(text, 1000, perFour); got != strings.Replace(text, "## Open TODOs\n- none\n", "", 1) {
		t.Errorf("with room for all: %q", got)
	}
	if got := extract(strings.Repeat("字", 400), 20, perFour); perFour(got) > 20 || !strings.HasPrefix(got, "字") {
		t.Errorf("one long line: %q", got)
	}
	if got := extract("", 20, perFour); got != "…" {
		t.Errorf("nothing: %q", got)
	}
}
