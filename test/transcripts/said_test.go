package transcripts_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// said is a message as a provider gets it.
type said struct {
	// role is user, assistant, system, result or note.
	role  string
	texts []string
	// thoughts is reasoning, calls what is called, results the ids answered.
	thoughts []string
	calls    []called
	results  []string
	images   int
	// answer is the text of the results; texts is what stands beside it.
	answer []string
	// excluded by the host, failed: stopped by an error or an abort.
	excluded, failed bool
}

type called struct{ id, name, args string }

// read reads a message of any dialect.
func read(raw json.RawMessage) (said, error) {
	var m struct {
		Role, Command, Output, Summary, StopReason string
		Content                                    json.RawMessage
		ToolCallID                                 *string `json:"toolCallId"`
		OpenAICallID                               *string `json:"tool_call_id"`
		ToolCalls                                  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
		ExcludeFromContext bool
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return said{}, err
	}
	s := said{
		role: m.Role, excluded: m.ExcludeFromContext,
		failed: m.StopReason == "error" || m.StopReason == "aborted",
	}
	if err := s.content(m.Content); err != nil {
		return s, err
	}
	for _, c := range m.ToolCalls {
		s.calls = append(s.calls, called{c.ID, c.Function.Name, c.Function.Arguments})
	}
	switch m.Role {
	case "user":
		if len(s.results) > 0 {
			s.role = "result"
		}
	case "assistant", "system":
	case "tool", "toolResult":
		s.role = "result"
		for _, id := range []*string{m.ToolCallID, m.OpenAICallID} {
			if id != nil {
				s.results = append(s.results, *id)
			}
		}
		s.answer, s.texts = s.texts, nil
	case "bashExecution", "custom", "branchSummary", "compactionSummary":
		s.role = "note"
		s.texts = append(s.texts, m.Command, m.Output, m.Summary)
	default:
		return s, fmt.Errorf("role %q", m.Role)
	}
	return s, nil
}

func (s *said) content(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		s.texts = append(s.texts, text)
		return err
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return err
	}
	for _, raw := range blocks {
		if raw[0] == '"' { // a plain text in a list
			if err := s.content(raw); err != nil {
				return err
			}
			continue
		}
		var b struct {
			Type, Text, Thinking, Data, ID, Name string
			ToolUseID                            string `json:"tool_use_id"`
			Arguments, Input, Content            json.RawMessage
		}
		if err := json.Unmarshal(raw, &b); err != nil {
			return err
		}
		switch b.Type {
		case "text":
			s.texts = append(s.texts, b.Text)
		case "thinking":
			s.thoughts = append(s.thoughts, b.Thinking)
		case "redacted_thinking":
			s.thoughts = append(s.thoughts, b.Data)
		case "toolCall", "tool_use":
			s.calls = append(s.calls, called{b.ID, b.Name, string(b.Arguments) + string(b.Input)})
		case "image":
			s.images++
		case "tool_result":
			s.results = append(s.results, b.ToolUseID)
			var inner said
			if err := inner.content(b.Content); err != nil {
				return err
			}
			s.answer = append(s.answer, inner.texts...)
			s.images += inner.images
		default:
			return fmt.Errorf("block %q", b.Type)
		}
	}
	return nil
}

// speaks reports whether it holds text that is no blank, or an image.
func (s *said) speaks() bool {
	return s.images > 0 || strings.TrimSpace(strings.Join(s.texts, "")) != ""
}

// showable reports whether a provider takes it at all.
func (s *said) showable() bool {
	switch {
	case s.excluded:
		return false
	case s.role == "result" || len(s.calls) > 0 || s.speaks():
		return true
	}
	return s.role == "assistant" && strings.Join(s.thoughts, "") != "" && !s.failed
}

// visible is all that a model reads of it.
func (s *said) visible() []string {
	out := append(append(append([]string{}, s.texts...), s.thoughts...), s.answer...)
	for _, c := range s.calls {
		out = append(out, c.name, c.args)
	}
	return out
}
