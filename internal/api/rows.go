package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
)

// EventRow is an event as pages and streams show it. Answers are not made from
// this type (appendRow writes the stored bytes); it describes them, and clients
// in Go can decode into it.
type EventRow struct {
	Seq        int64  `json:"seq"`
	Type       string `json:"type"`
	SessionKey string `json:"sessionKey"`
	Epoch      int64  `json:"epoch"`
	// Role, Tokens and IsHeartbeat are a message's.
	Role        string `json:"role,omitempty"`
	Tokens      int    `json:"tokens,omitempty"`
	IsHeartbeat bool   `json:"isHeartbeat,omitempty"`
	// ParentSeq is the message this one follows; absent for the first.
	ParentSeq  int64     `json:"parentSeq,omitempty"`
	GatewayID  string    `json:"gatewayId,omitempty"`
	SessionID  string    `json:"sessionId,omitempty"`
	RecordedAt time.Time `json:"recordedAt"`
	// Message is a message's stored bytes, Data what an event of another type
	// says; one of the two is there.
	Message json.RawMessage `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// appendRow writes an event as one JSON object. key is the session key as JSON.
func appendRow(dst []byte, key []byte, e *events.Event) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, e.Type.String()...)
	dst = append(dst, `","sessionKey":`...)
	dst = append(dst, key...)
	dst = append(dst, `,"epoch":`...)
	dst = strconv.AppendInt(dst, e.Epoch, 10)
	isMessage := e.Type == events.MessageAppended
	if isMessage {
		dst = append(dst, `,"role":"`...)
		dst = append(dst, roleName(e.Facts.Role)...)
		dst = append(dst, '"')
		dst = appendInt(dst, "tokens", int64(e.Facts.Tokens))
		if e.Facts.Flags.Has(message.Heartbeat) {
			dst = append(dst, `,"isHeartbeat":true`...)
		}
	}
	dst = appendInt(dst, "parentSeq", e.ParentSeq)
	dst = appendText(dst, "gatewayId", e.Gateway)
	dst = appendText(dst, "sessionId", e.HostSessionID)
	dst = append(dst, `,"recordedAt":"`...)
	dst = e.RecordedAt.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	if len(e.Body) > 0 {
		name := `,"data":`
		if isMessage {
			name = `,"message":`
		}
		dst = append(dst, name...)
		dst = append(dst, e.Body...)
	}
	return append(dst, '}')
}

func appendInt(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

func appendText(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return append(dst, jsonText(s)...)
}

// jsonText is a string as JSON. Marshalling a string can't fail.
func jsonText(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// roleName is a role on the wire, in the contract's words.
func roleName(r message.Role) string {
	switch r {
	case message.User:
		return "user"
	case message.Assistant:
		return "assistant"
	case message.Result:
		return "toolResult"
	case message.System:
		return "system"
	case message.Note:
		return "note"
	}
	return "unknown"
}

func dialectName(d message.Dialect) string {
	switch d {
	case message.OpenClaw:
		return "openclaw"
	case message.OpenAI:
		return "openai"
	case message.Anthropic:
		return "anthropic"
	}
	return "neutral"
}
