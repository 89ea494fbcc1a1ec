package message

import (
	"strconv"
	"strings"
	"time"
)

// envelope is the members of a message that say anything, as JSON text. Of a
// member that comes twice the last counts, as in every host's parser.
type envelope struct {
	role, content, kind                              []byte
	toolCalls, functionCall, refusal                 []byte
	callID, callIDs, toolName, name                  []byte
	isError, exclude, stop, timestamp                []byte
	usage, responseID, entryKey, provenance, model   []byte
	command, output, exitCode, summary               []byte
	openclaw, openai, anthropic, members, hasContent bool
}

// Read reads one message of any dialect. It fails only on what is no JSON
// object (with an *InvalidError): an unknown role is a Note, an unknown block
// counts as its JSON text, a missing member as empty.
func Read(body []byte) (Message, error) {
	s := scanner{data: body}
	if s.peek() != '{' {
		return Message{}, &InvalidError{Reason: "not a JSON object", Offset: s.pos}
	}
	var e envelope
	e.collect(&s)
	s.end()
	if s.err != nil {
		return Message{}, s.err
	}
	m := e.message(body)
	m.Flags |= e.flags(&m)
	return m, nil
}

func (e *envelope) collect(s *scanner) {
	for m := s.object(); m.next(); {
		v := s.span()
		if isNull(v) && string(m.key) != "content" {
			continue
		}
		e.members = true
		switch string(m.key) {
		case "role":
			e.role = v
		case "content":
			e.content, e.hasContent = v, true
		case "type":
			e.kind = v
		case "tool_calls":
			e.toolCalls, e.openai = v, true
		case "function_call":
			e.functionCall, e.openai = v, true
		case "refusal":
			e.refusal, e.openai = v, true
		case "tool_call_id":
			e.callID, e.openai = v, true
		case "tool_call_ids":
			e.callIDs, e.openai = v, true
		case "toolCallId", "toolUseId":
			e.callID, e.openclaw = v, true
		case "toolName":
			e.toolName, e.openclaw = v, true
		case "name":
			e.name = v
		case "isError":
			e.isError, e.openclaw = v, true
		case "excludeFromContext":
			e.exclude, e.openclaw = v, true
		case "stopReason":
			e.stop, e.openclaw = v, true
		case "stop_reason", "stop_sequence":
			e.anthropic = true
		case "timestamp":
			e.timestamp, e.openclaw = v, true
		case "usage":
			e.usage = v
		case "model":
			e.model = v
		case "responseId":
			e.responseID, e.openclaw = v, true
		case "idempotencyKey":
			e.entryKey, e.openclaw = v, true
		case "provenance":
			e.provenance, e.openclaw = v, true
		case "customType", "api", "provider", "__openclaw", "runtimeContextCarrier":
			e.openclaw = true
		case "command":
			e.command = v
		case "output":
			e.output = v
		case "exitCode":
			e.exitCode = v
		case "summary":
			e.summary = v
		}
	}
}

// message builds all but the flags that depend on the whole.
func (e *envelope) message(body []byte) Message {
	m := Message{
		ToolName:     stringOf(e.toolName),
		Timestamp:    timeOf(e.timestamp),
		ResponseID:   stringOf(e.responseID),
		EntryKey:     stringOf(e.entryKey),
		PromptTokens: promptTokens(e.usage),
		Model:        stringOf(e.model),
	}
	c := content{dialects: &dialectMarks{openclaw: e.openclaw, openai: e.openai, anthropic: e.anthropic}}
	role := stringOf(e.role)
	if role == "user" || role == "assistant" {
		m.Name = stringOf(e.name)
	}
	switch role {
	case "user":
		m.Role = User
		c.results = true
		c.read(e.content)
		if c.hasResult {
			m.Role = Result
		}
	case "assistant":
		m.Role = Assistant
		c.read(e.content)
		c.text(stringOf(e.refusal))
		c.toolCalls(e.toolCalls)
		c.functionCall(e.functionCall)
		if stringOf(e.kind) == "message" {
			c.dialects.anthropic = true
		}
	case "system", "developer":
		m.Role = System
		c.dialects.openai = c.dialects.openai || role == "developer"
		c.read(e.content)
	case "tool", "function", "toolResult":
		m.Role = Result
		if role == "toolResult" {
			c.dialects.openclaw = true
		} else {
			c.dialects.role(OpenAI)
		}
		if m.ToolName == "" {
			m.ToolName = stringOf(e.name)
		}
		e.result(&c, role, m.ToolName)
	case "bashExecution":
		m.Role = Note
		c.dialects.role(OpenClaw)
		c.text(e.bash())
		c.cuttable(len(e.command) <= MaxUncutCommand && stringOf(e.output) != "")
	case "branchSummary", "compactionSummary":
		m.Role = Note
		c.dialects.role(OpenClaw)
		c.text(stringOf(e.summary))
		c.cuttable(true)
	case "custom":
		m.Role = Note
		c.dialects.role(OpenClaw)
		c.read(e.content)
		c.cuttable(true)
	default:
		m.Role = Note
		if e.hasContent {
			c.read(e.content)
		} else if e.members {
			c.text(unquoteJSON(body))
		}
	}
	m.Blocks = c.blocks
	m.Flags = c.flags
	m.Dialect = c.dialects.decide()
	return m
}

// result reads a message that is one tool's result. An OpenAI function result
// has no id: the function's name stands for it, as it does in the call.
func (e *envelope) result(c *content, role, name string) {
	ids := []string{stringOf(e.callID)}
	if e.callID == nil {
		switch {
		case role == "function":
			ids[0] = name
		case len(e.callIDs) > 0 && e.callIDs[0] == '[':
			s := scanner{data: e.callIDs}
			ids = ids[:0]
			for it := s.array(); it.next(); {
				ids = append(ids, stringOf(s.span()))
			}
			if len(ids) == 0 {
				ids = []string{""}
			}
		}
	}
	c.result(ids[0], e.content)
	for _, id := range ids[1:] {
		c.add(Block{Kind: ToolResult, ResultOf: id})
	}
	if string(e.isError) == "true" {
		c.flags |= IsError
	}
}

// bash is a bashExecution much as hosts render it for the model.
func (e *envelope) bash() string {
	var b strings.Builder
	b.WriteString("Ran `" + stringOf(e.command) + "`\n```\n" + stringOf(e.output) + "\n```")
	if code := string(e.exitCode); code != "" && code != "0" {
		b.WriteString("\nexit code " + code)
	}
	return b.String()
}

// stringOf decodes a JSON string; anything else is "".
func stringOf(v []byte) string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	return unquote(v[1 : len(v)-1])
}

// unquoteJSON is JSON text as a string.
func unquoteJSON(v []byte) string { return strings.ToValidUTF8(string(v), "\uFFFD") }

func isNull(v []byte) bool { return string(v) == "null" }

// timeOf reads Unix milliseconds, or a time of RFC 3339.
func timeOf(v []byte) int64 {
	if len(v) == 0 {
		return 0
	}
	if v[0] == '"' {
		t, err := time.Parse(time.RFC3339Nano, stringOf(v))
		if err != nil {
			return 0
		}
		return t.UnixMilli()
	}
	return integer(v)
}

// integer reads a JSON number, cut to a whole one; 0 for anything else or what
// no int64 holds.
func integer(v []byte) int64 {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f >= 1<<62 || f <= -(1<<62) {
		return 0
	}
	return int64(f)
}

// promptTokens adds up what a usage says of the prompt: OpenClaw's input,
// cacheRead and cacheWrite, Anthropic's input_tokens and caches, or OpenAI's
// prompt_tokens.
func promptTokens(v []byte) int {
	if len(v) == 0 || v[0] != '{' {
		return 0
	}
	var sum int64
	s := scanner{data: v}
	for m := s.object(); m.next(); {
		n := s.span()
		switch string(m.key) {
		case "input", "cacheRead", "cacheWrite",
			"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
			"prompt_tokens":
			// A count beyond this is no count, and must not overflow a sum.
			if t := integer(n); t > 0 && t < 1<<40 {
				sum += t
			}
		}
	}
	return int(sum)
}
