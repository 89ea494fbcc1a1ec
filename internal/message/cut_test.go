package message_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// thirds is a crude estimate: a token for three bytes.
func thirds(s string) int { return (len(s) + 2) / 3 }

func TestCutResult(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 1000)
	for name, tc := range map[string]struct {
		body, want string
		tokens     int
	}{
		"fits": {`{"role":"tool","tool_call_id":"c","content":"short"}`, `{"role":"tool","tool_call_id":"c","content":"short"}`, 64},
		"openai string": {
			`{"n":1.00, "content":"` + x + `" ,"role":"tool","tool_call_id":"c\u0031"}`,
			`{"n":1.00, "content":"` + x[:132] + `\n[engined: 132 of 1000 characters shown; full text: event 7]" ,"role":"tool","tool_call_id":"c\u0031"}`, 64,
		},
		"openclaw blocks": {
			`{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"first"}, {"type":"image","data":"AAAA","mimeType":"image/png"},{"text":"` + x + `","x":1,"type":"text"} , {"type":"text","text":"third"},{"type":"image","data":"BBBB","mimeType":"image/png"},{"type":"text","text":"last"}],"details":{"kept":[1, 2]},"isError":true}`,
			`{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"first"}, {"type":"image","data":"AAAA","mimeType":"image/png"},{"text":"` + x[:123] + `\n[engined: 128 of 1014 characters shown; full text: event 7]","x":1,"type":"text"} ,{"type":"image","data":"BBBB","mimeType":"image/png"}],"details":{"kept":[1, 2]},"isError":true}`, 64,
		},
		"escapes count as one character": {
			`{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat(`\ud83d\ude00`, 300) + `"}`,
			`{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat(`\ud83d\ude00`, 33) + `\n[engined: 33 of 300 characters shown; full text: event 7]"}`, 64,
		},
		"anthropic shares": {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"small"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"` + x + `"}],"is_error":false},{"type":"text","text":"` + x + `"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"small"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"` + x[:126] + `\n[engined: 126 of 1000 characters shown; full text: event 7]"}],"is_error":false},{"type":"text","text":"` + x + `"}]}`, 64,
		},
		"unknown block goes whole": {
			`{"role":"toolResult","toolCallId":"c","content":[{"type":"odd","x":"` + x + `"},{"type":"text","text":"a"}]}`,
			`{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"[engined: 0 of 1022 characters shown; full text: event 7]"}]}`, 64,
		},
		"content of wrong shape": {
			`{"role":"toolResult","toolCallId":"c","content":{"x":"` + x + `"}}`,
			`{"role":"toolResult","toolCallId":"c","content":"[engined: 0 of 1008 characters shown; full text: event 7]"}`, 64,
		},
		"bash output": {
			`{"role":"bashExecution","command":"find .","output":"` + x + `","exitCode":0,"output":null}`,
			`{"role":"bashExecution","command":"find .","output":"` + x[:132] + `\n[engined: 132 of 1000 characters shown; full text: event 7]","exitCode":0,"output":null}`, 64,
		},
		"a host's summary": {
			`{"role":"branchSummary","summary":"` + x + `","fromId":"a"}`,
			`{"role":"branchSummary","summary":"` + x[:132] + `\n[engined: 132 of 1000 characters shown; full text: event 7]","fromId":"a"}`, 64,
		},
		"custom": {
			`{"role":"custom","customType":"t","content":[{"type":"text","text":"first"},{"type":"text","text":"` + x + `"}],"display":true}`,
			`{"role":"custom","customType":"t","content":[{"type":"text","text":"first"},{"type":"text","text":"` + x[:123] + `\n[engined: 128 of 1005 characters shown; full text: event 7]"}],"display":true}`, 64,
		},
		"no room": {
			`{"role":"tool","tool_call_id":"c","content":"` + x + `"}`,
			`{"role":"tool","tool_call_id":"c","content":"[engined: 0 of 1000 characters shown; full text: event 7]"}`, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := message.CutResult([]byte(tc.body), 7, tc.tokens, thirds)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("CutResult (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCutResultRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"user","content":"a"}`,
		`{"role":"assistant","content":"a"}`,
		`{"role":"bashExecution","command":"` + strings.Repeat("c", message.MaxUncutCommand) + `","output":"a"}`,
		`{"role":"bashExecution","command":"c","output":7}`,
		`{"role":"custom","customType":"t","content":[]}`,
		`{"role":"toolResult","toolCallId":"c","content":[]}`,
		`{"role":"toolResult","toolCallId":"c","content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
	} {
		if _, err := message.CutResult([]byte(body), 1, 64, thirds); !errors.Is(err, message.ErrNotCuttable) {
			t.Errorf("CutResult(%s): %v", body, err)
		}
	}
}

// TestCutResultProperties holds for any texts in any dialect: the cut copy is
// a message with the same ids and images, fits, shows a prefix of the text and
// says so.
func TestCutResultProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(
			rapid.StringN(0, 400, -1),
			rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("aé日😀\n", n/5) }),
		)
		texts := rapid.SliceOfN(word, 1, 4).Draw(t, "texts")
		budget := rapid.IntRange(64, 400).Draw(t, "budget")
		ascii := rapid.Bool().Draw(t, "ascii")
		dialect := rapid.IntRange(0, 2).Draw(t, "dialect")

		var blocks []string
		for i, s := range texts {
			b, _ := json.Marshal(s)
			if ascii {
				b = []byte(toASCII(s))
			}
			blocks = append(blocks, `{"type":"text","text":`+string(b)+`}`)
			if i%2 == 1 {
				blocks = append(blocks, `{"type":"image","source":{"type":"base64","data":"AAAA"}}`)
			}
		}
		content := "[" + strings.Join(blocks, " , ") + "]"
		body := []byte([]string{
			`{"role":"toolResult","toolCallId":"c1","content":` + content + `,"details":{"a":1.0}}`,
			`{"role":"tool","tool_call_id":"c1","content":` + content + `}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":` + content + `}]}`,
		}[dialect])

		before, err := message.Read(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := message.CutResult(body, 42, budget, thirds)
		if errors.Is(err, message.ErrNotCuttable) {
			if before.Blocks[0].Text != "" {
				t.Fatal(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, _ := message.CutResult(body, 42, budget, thirds)
		if !bytes.Equal(got, again) {
			t.Fatal("not deterministic")
		}
		if err := message.Check(got, message.Limits{}); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		after, err := message.Read(got)
		if err != nil {
			t.Fatal(err)
		}
		text := after.Blocks[0].Text
		if n := thirds(text); n > budget {
			t.Fatalf("%d tokens, allowed %d", n, budget)
		}
		full := before.Blocks[0].Text
		before.Blocks[0].Text, after.Blocks[0].Text = "", ""
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("more than the text changed:\n%s", diff)
		}
		if text == full {
			if !bytes.Equal(got, body) {
				t.Fatal("nothing was cut, yet the body changed")
			}
			return
		}
		at := strings.LastIndex(text, "[engined: ")
		var shown, of, seq int
		if _, err := fmt.Sscanf(text[at:], "[engined: %d of %d characters shown; full text: event %d]", &shown, &of, &seq); err != nil {
			t.Fatalf("ending of %q: %v", text, err)
		}
		kept := strings.TrimSuffix(text[:at], "\n")
		if !strings.HasPrefix(full, kept) || seq != 42 || of != utf8.RuneCountInString(strings.Join(texts, "")) {
			t.Fatalf("kept %q of %q, ending %q", kept, full, text[at:])
		}
		if joins := utf8.RuneCountInString(kept) - shown; joins < 0 || joins > len(texts) {
			t.Fatalf("says %d characters, shows %d", shown, utf8.RuneCountInString(kept))
		}
	})
}

// toASCII spells s as JSON with every character outside ASCII escaped.
func toASCII(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		case r < 0x20 || r == '"' || r == '\\' || r > 0x7E:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"b","arguments":{}}],"stopReason":"toolUse"}`,
		`{"role":"toolResult","toolCallId":"a","content":[{"type":"text","text":"` + strings.Repeat("ab ", 200) + `"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"` + strings.Repeat(`\ud83d\ude00`, 200) + `"},7,"x"]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{}]}`,
		`{"role":"tool","tool_call_ids":["a","b"],"content":[{"type":"odd"},null,[]]}`,
		`{"role":"function","name":"f","content":{"a":1}}`,
		`{"role":"bashExecution","command":"x","output":"y"}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"AAAA"}},{"type":"file","file":{"file_data":"data:x,AA"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := message.Read(body)
		if err != nil {
			return
		}
		if !utf8.ValidString(visibleText(m)) {
			t.Fatalf("visible text of %q is no UTF-8", body)
		}
		facts := m.Facts(func(m message.Message) int { return 1 + len(visibleText(m)) })
		if facts.Flags.Has(message.Hidden) != (facts.Tokens == 0) {
			t.Fatalf("%q: %+v", body, facts)
		}
		if (m.Role == message.Result) != (len(facts.Results) > 0) {
			t.Fatalf("%q: role %d with results %q", body, m.Role, facts.Results)
		}
		cut, err := message.CutResult(body, 1, 64, thirds)
		if err != nil {
			if m.Flags.Has(message.Cuttable) || !errors.Is(err, message.ErrNotCuttable) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		after, err := message.Read(cut)
		if err != nil {
			t.Fatalf("%q cut to %q: %v", body, cut, err)
		}
		if got := after.Facts(nil); !cmp.Equal(facts.Results, got.Results) || after.Role != m.Role {
			t.Fatalf("%q cut to %q", body, cut)
		}
	})
}
