package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/engined/engined/host"
)

// clock is the one tool of this gateway.
type clock struct{}

// Names are what the model may call.
func (clock) Names() []string { return []string{"now"} }

// Call answers with a message in OpenAI's dialect.
func (clock) Call(_ context.Context, c host.ToolCall) (json.RawMessage, error) {
	text := time.Now().Format(time.RFC1123Z)
	if c.Name != "now" {
		text = "there is no tool " + c.Name
	}
	return json.Marshal(map[string]string{"role": "tool", "tool_call_id": c.ID, "content": text})
}

func describe(names []string) []chatTool {
	var tools []chatTool
	for _, name := range names {
		tools = append(tools, chatTool{Type: "function", Function: chatFunction{
			Name: name, Description: "Tells the date and the time.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
		}})
	}
	return tools
}
