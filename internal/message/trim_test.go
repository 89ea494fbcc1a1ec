package message_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

func TestTrimResultKeepsBothEnds(t *testing.T) {
	t.Parallel()
	const body = `{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"first\u0020line %s last\nline \ud83d\ude00"}]}`
	long := fmt.Sprintf(body, strings.Repeat("word ", 2000))
	got, err := message.TrimResult([]byte(long), 7, 80, tokens.Text)
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	if !strings.HasPrefix(text, `{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"first\u0020line word`) ||
		!strings.HasSuffix(text, ` last\nline \ud83d\ude00"}]}`) ||
		!regexp.MustCompile(`\\n\[engined: \d+ of 10023 characters shown; full text: event 7\]\\n`).MatchString(text) {
		t.Errorf("%s", got)
	}
	small := fmt.Sprintf(body, "")
	if got, err := message.TrimResult([]byte(small), 7, 80, tokens.Text); err != nil || string(got) != small {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTrimResultFitsAndSplitsNoCharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"word ", "漢字", `\ud83d\ude00`, `\n`, "é", `\ud800`, `\u0000`}).Draw(t, "unit"), rapid.IntRange(100, 3000).Draw(t, "times"))
		body := `{"role":"tool","tool_call_id":"c","content":"` + text + `"}`
		most := rapid.IntRange(64, 800).Draw(t, "tokens")
		got, err := message.TrimResult([]byte(body), 12, most, tokens.Text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := message.Read(got)
		if err != nil {
			t.Fatal(err)
		}
		shown := m.Blocks[0].Text
		if n := tokens.Text(shown); n > most || !utf8.ValidString(shown) {
			t.Fatalf("%d tokens of %d: %q", n, most, shown)
		}
	})
}
