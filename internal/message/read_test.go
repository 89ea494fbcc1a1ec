package message_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

func text(s string) message.Block { return message.Block{Kind: message.Text, Text: s} }

func thought(s string) message.Block { return message.Block{Kind: message.Thinking, Text: s} }

func call(id, name, args string) message.Block {
	return message.Block{Kind: message.ToolCall, Call: message.Call{ID: id, Name: name, Args: args}}
}

func result(id, s string) message.Block {
	return message.Block{Kind: message.ToolResult, ResultOf: id, Text: s}
}

func image(n int) message.Block { return message.Block{Kind: message.Image, ImageBytes: n} }

func TestRead(t *testing.T) {
	t.Parallel()
	type M = message.Message
	type B = []message.Block
	for name, tc := range map[string]struct {
		body string
		want M
	}{
		"neutral user":               {`{"role":"user","content":"hi"}`, M{Role: message.User, Blocks: B{text("hi")}}},
		"neutral user blocks":        {`{"role":"user","content":[{"type":"text","text":"hi"}]}`, M{Role: message.User, Blocks: B{text("hi")}}},
		"neutral assistant":          {`{"role":"assistant","content":"yo"}`, M{Role: message.Assistant, Blocks: B{text("yo")}}},
		"members in any order":       {`{"content":"hi","role":"user"}`, M{Role: message.User, Blocks: B{text("hi")}}},
		"last of two members counts": {`{"role":"system","role":"user","content":"a","content":"b"}`, M{Role: message.User, Blocks: B{text("b")}}},
		"escaped member names":       {`{"ro\u006ce":"user","content":"hi"}`, M{Role: message.User, Blocks: B{text("hi")}}},
		"escapes in text":            {`{"role":"user","content":"a\u0000\ud83d\ude00\ud800\n\/"}`, M{Role: message.User, Blocks: B{text("a\x00😀\uFFFD\n/")}}},

		"openclaw user": {
			`{"role":"user","content":"hi","timestamp":1790000000000,"idempotencyKey":"k:user","__openclaw":{"senderId":"1"}}`,
			M{
				Dialect: message.OpenClaw, Role: message.User, Timestamp: 1790000000000, EntryKey: "k:user",
				Blocks: B{text("hi")},
			},
		},
		"openclaw assistant": {
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"a"},{"type":"toolCall","id":"c1","name":"exec","arguments":{"command": "ls"},"partialArgs":"{"}],"api":"x","usage":{"input":10,"output":5,"cacheRead":3,"cacheWrite":2,"totalTokens":20,"cost":{"input":0.1}},"stopReason":"toolUse","timestamp":2,"responseId":"r1"}`,
			M{
				Dialect: message.OpenClaw, Role: message.Assistant, Timestamp: 2, ResponseID: "r1", PromptTokens: 15,
				Blocks: B{thought("hm"), text("a"), call("c1", "exec", `{"command": "ls"}`)},
			},
		},
		"openclaw result": {
			`{"role":"toolResult","toolCallId":"c1","toolName":"exec","content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"b"}],"details":{"x":1},"isError":true,"timestamp":3}`,
			M{
				Dialect: message.OpenClaw, Role: message.Result, Timestamp: 3, ToolName: "exec",
				Flags:  message.HasImage | message.IsError | message.Cuttable,
				Blocks: B{result("c1", "a\nb"), image(3)},
			},
		},
		"openclaw result without content": {
			`{"role":"toolResult","toolCallId":"c1"}`,
			M{Dialect: message.OpenClaw, Role: message.Result, Blocks: B{result("c1", "")}},
		},
		"openclaw aborted with text": {
			`{"role":"assistant","content":[{"type":"text","text":"half"}],"stopReason":"aborted"}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Flags: message.Aborted, Blocks: B{text("half")}},
		},
		"openclaw aborted, reasoning only": {
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"stopReason":"error"}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Flags: message.Aborted | message.Hidden, Blocks: B{thought("hm")}},
		},
		"reasoning only, not aborted": {
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"stopReason":"stop"}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Blocks: B{thought("hm")}},
		},
		"empty reasoning": {
			`{"role":"assistant","content":[{"type":"thinking","thinking":""}],"stopReason":"stop"}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Flags: message.Hidden, Blocks: B{thought("")}},
		},
		"empty assistant": {
			`{"role":"assistant","content":[],"timestamp":1}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Timestamp: 1, Flags: message.Hidden},
		},
		"blank assistant": {
			`{"role":"assistant","content":"\n "}`,
			M{Role: message.Assistant, Flags: message.Hidden, Blocks: B{text("\n ")}},
		},
		"empty user":  {`{"role":"user","content":""}`, M{Role: message.User, Flags: message.Hidden}},
		"no content":  {`{"role":"user"}`, M{Role: message.User, Flags: message.Hidden}},
		"custom note": {`{"role":"custom","customType":"x","content":"n","display":true}`, M{Dialect: message.OpenClaw, Role: message.Note, Flags: message.Cuttable, Blocks: B{text("n")}}},
		"excluded note": {
			`{"role":"custom","customType":"openclaw.nested-tool.v1","content":"n","excludeFromContext":true}`,
			M{Dialect: message.OpenClaw, Role: message.Note, Flags: message.Hidden | message.Cuttable, Blocks: B{text("n")}},
		},
		"bash": {
			`{"role":"bashExecution","command":"ls","output":"f","exitCode":1,"cancelled":false,"truncated":false}`,
			M{Dialect: message.OpenClaw, Role: message.Note, Flags: message.Cuttable, Blocks: B{text("Ran `ls`\n```\nf\n```\nexit code 1")}},
		},
		"compaction summary": {
			`{"role":"compactionSummary","summary":"s","tokensBefore":9,"timestamp":"2026-01-01T00:00:00Z"}`,
			M{Dialect: message.OpenClaw, Role: message.Note, Flags: message.Cuttable, Timestamp: 1767225600000, Blocks: B{text("s")}},
		},
		"branch summary": {
			`{"role":"branchSummary","summary":"s","fromId":"a"}`,
			M{Dialect: message.OpenClaw, Role: message.Note, Flags: message.Cuttable, Blocks: B{text("s")}},
		},
		"heartbeat poll": {
			`{"role":"user","content":"[OpenClaw heartbeat poll]","provenance":{"kind":"internal_system","sourceTool":"heartbeat"}}`,
			M{Dialect: message.OpenClaw, Role: message.User, Flags: message.Heartbeat, Blocks: B{text("[OpenClaw heartbeat poll]")}},
		},
		"heartbeat answer": {
			`{"role":"assistant","content":[{"type":"text","text":" HEARTBEAT_OK\n"}]}`,
			M{Role: message.Assistant, Flags: message.Heartbeat, Blocks: B{text(" HEARTBEAT_OK\n")}},
		},
		"no heartbeat: a call": {
			`{"role":"assistant","content":[{"type":"text","text":"HEARTBEAT_OK"},{"type":"toolCall","id":"1","name":"x","arguments":{}}]}`,
			M{Dialect: message.OpenClaw, Role: message.Assistant, Blocks: B{text("HEARTBEAT_OK"), call("1", "x", "{}")}},
		},

		"openai system":    {`{"role":"system","content":"s"}`, M{Role: message.System, Blocks: B{text("s")}}},
		"openai developer": {`{"role":"developer","content":"s"}`, M{Dialect: message.OpenAI, Role: message.System, Blocks: B{text("s")}}},
		"openai calls": {
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]}`,
			M{Dialect: message.OpenAI, Role: message.Assistant, Blocks: B{call("c1", "f", `{"a":1}`), call("c2", "g", "")}},
		},
		"openai tool": {
			`{"role":"tool","tool_call_id":"c1","name":"f","content":"r"}`,
			M{Dialect: message.OpenAI, Role: message.Result, ToolName: "f", Flags: message.Cuttable, Blocks: B{result("c1", "r")}},
		},
		"openai tool parts": {
			`{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			M{Dialect: message.OpenAI, Role: message.Result, Flags: message.Cuttable, Blocks: B{result("c1", "a\nb")}},
		},
		"openai function": {
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			M{Dialect: message.OpenAI, Role: message.Assistant, Blocks: B{call("f", "f", "{}")}},
		},
		"openai function result": {
			`{"role":"function","name":"f","content":"r"}`,
			M{Dialect: message.OpenAI, Role: message.Result, ToolName: "f", Flags: message.Cuttable, Blocks: B{result("f", "r")}},
		},
		"openai refusal": {
			`{"role":"assistant","content":null,"refusal":"no"}`,
			M{Dialect: message.OpenAI, Role: message.Assistant, Blocks: B{text("no")}},
		},
		"openai null refusal": {
			`{"role":"assistant","content":"a","refusal":null,"tool_calls":null}`,
			M{Role: message.Assistant, Blocks: B{text("a")}},
		},
		"openai images": {
			`{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAAAAA="}},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`,
			M{Dialect: message.OpenAI, Role: message.User, Flags: message.HasImage, Blocks: B{text("t"), image(5), image(0)}},
		},

		"anthropic assistant": {
			`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"redacted_thinking","data":"xx"},{"type":"text","text":"t"},{"type":"tool_use","id":"u1","name":"n","input":{"a":[1]}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5,"output_tokens":9}}`,
			M{
				Dialect: message.Anthropic, Role: message.Assistant, PromptTokens: 12,
				Blocks: B{thought("h"), thought("xx"), text("t"), call("u1", "n", `{"a":[1]}`)},
			},
		},
		"anthropic results": {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":"r"},{"type":"tool_result","tool_use_id":"u2","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"tool_result","tool_use_id":"u3"}]}`,
			M{
				Dialect: message.Anthropic, Role: message.Result, Flags: message.HasImage | message.IsError | message.Cuttable,
				Blocks: B{result("u1", "r"), result("u2", "a"), image(3), result("u3", "")},
			},
		},
		"anthropic results and text": {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":"r"},{"type":"text","text":"go on"}]}`,
			M{
				Dialect: message.Anthropic, Role: message.Result, Flags: message.UserText | message.Cuttable,
				Blocks: B{result("u1", "r"), text("go on")},
			},
		},
		"anthropic document": {
			`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}},{"type":"image","source":{"type":"url","url":"https://x"}}]}`,
			M{Dialect: message.Anthropic, Role: message.User, Flags: message.HasImage, Blocks: B{text("doc"), image(0)}},
		},

		"unknown role":           {`{"role":"weird","content":"x"}`, M{Role: message.Note, Flags: message.Hidden, Blocks: B{text("x")}}},
		"no role":                {`{"a":1}`, M{Role: message.Note, Flags: message.Hidden, Blocks: B{text(`{"a":1}`)}}},
		"empty object":           {`{}`, M{Role: message.Note, Flags: message.Hidden}},
		"unknown block":          {`{"role":"user","content":[{"type":"hologram","x":[1]}]}`, M{Role: message.User, Blocks: B{text(`{"type":"hologram","x":[1]}`)}}},
		"content of wrong shape": {`{"role":"user","content":{"a":1}}`, M{Role: message.User, Blocks: B{text(`{"a":1}`)}}},
		"blocks of wrong shape":  {`{"role":"user","content":["a",7]}`, M{Role: message.User, Blocks: B{text("a"), text("7")}}},
		"members of wrong shape": {`{"role":"assistant","content":"a","tool_calls":[7],"usage":[],"timestamp":{}}`, M{Dialect: message.OpenClaw, Role: message.Assistant, Blocks: B{text("a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := message.Read([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefusesOnlyWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", " ", "null", "7", `"x"`, "[]", "[{}]", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{}{}`, `{"a":01}`, `{"a":"` + "\n" + `"}`,
		`{"a":"\x"}`, `{"a":"\u12"}`, `{a:1}`, `{"a":tru}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":1]`,
	} {
		_, err := message.Read([]byte(body))
		if _, ok := errors.AsType[*message.InvalidError](err); !ok {
			t.Errorf("Read(%q) = %v, want an InvalidError", body, err)
		}
	}
}

func TestReadDeepNesting(t *testing.T) {
	t.Parallel()
	n := 1 << 20
	body := `{"role":"user","content":"hi","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	m, err := message.Read([]byte(body))
	if err != nil || visibleText(m) != "hi" {
		t.Fatalf("Read = %+v, %v", m, err)
	}
}
