// Package llmtest has servers that speak as OpenAI's and Anthropic's do and
// misbehave as told, for the tests of whoever asks a model.
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Reply is what a server does with a request.
type Reply struct {
	// Status, if not 0, is an error with this header and error code.
	Status int
	Header map[string]string
	Code   string
	// Text is the answer; Finish why it ended, in OpenAI's words, "stop" by
	// default. Refusal is a declared one.
	Text, Finish string
	Refusal      bool
	// Plain answers with one document although a stream was asked for.
	Plain bool
	// Hang stops in the middle of the text until the client leaves, Cut breaks the
	// connection there, Silent does not answer at all until the client leaves.
	Hang, Cut, Silent bool
	// InStream reports this error type in the middle of a stream (Anthropic's).
	InStream string
	// Untold leaves out what was used.
	Untold bool
}

// Request is what a server saw.
type Request struct {
	System, User, Model string
	MaxTokens           int
	Stream              bool
	Header              http.Header
}

// Server is a fake provider. It counts what it was asked.
type Server struct {
	URL    string
	mu     sync.Mutex
	seen   []Request
	script func(n int, r Request) Reply
}

// Requests are those seen so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

func start(t testing.TB, path string, script func(n int, r Request) Reply, read func([]byte) Request, write func(http.ResponseWriter, *http.Request, Request, Reply)) *Server {
	t.Helper()
	s := &Server{script: script}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, path) {
			http.Error(w, "no such path", http.StatusNotFound)
			return
		}
		req := read(body)
		req.Header = r.Header
		s.mu.Lock()
		s.seen = append(s.seen, req)
		n := len(s.seen)
		s.mu.Unlock()
		reply := s.script(n, req)
		if reply.Silent {
			<-r.Context().Done()
			return
		}
		for k, v := range reply.Header {
			w.Header().Set(k, v)
		}
		write(w, r, req, reply)
	}))
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// OpenAI starts a server of chat completions. script is called with the number
// of the request, from 1.
func OpenAI(t testing.TB, script func(n int, r Request) Reply) *Server {
	t.Helper()
	return start(t, "/chat/completions", script, readOpenAI, writeOpenAI)
}

// Anthropic starts a server of messages.
func Anthropic(t testing.TB, script func(n int, r Request) Reply) *Server {
	t.Helper()
	return start(t, "/v1/messages", script, readAnthropic, writeAnthropic)
}

func readOpenAI(body []byte) Request {
	var in struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
		Stream    bool   `json:"stream"`
		Messages  []struct{ Role, Content string }
	}
	_ = json.Unmarshal(body, &in) // a test sees what is missing
	r := Request{Model: in.Model, MaxTokens: in.MaxTokens, Stream: in.Stream}
	for _, m := range in.Messages {
		if m.Role == "user" {
			r.User = m.Content
		} else {
			r.System = m.Content
		}
	}
	return r
}

func writeOpenAI(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	if reply.Status != 0 {
		failed(w, reply.Status, map[string]any{"error": map[string]any{"message": "it echoes: " + req.User, "code": reply.Code, "type": "error"}})
		return
	}
	finish := reply.Finish
	if finish == "" {
		finish = "stop"
	}
	usage := map[string]any{"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
	if reply.Untold {
		usage = nil
	}
	if reply.Plain || !req.Stream {
		message := map[string]any{"role": "assistant", "content": reply.Text}
		if reply.Refusal {
			message["refusal"] = "I can't"
		}
		document(w, map[string]any{
			"id": "c", "object": "chat.completion", "model": req.Model + "-served", "usage": usage,
			"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": message}},
		})
		return
	}
	chunk := func(delta map[string]any, finish any) {
		event(w, "", map[string]any{
			"id": "c", "object": "chat.completion.chunk", "model": req.Model + "-served",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if reply.Refusal {
		chunk(map[string]any{"refusal": "I can't"}, nil)
	}
	if !parts(w, r, reply, func(text string) { chunk(map[string]any{"content": text}, nil) }) {
		return
	}
	chunk(map[string]any{}, finish)
	if usage != nil {
		event(w, "", map[string]any{"id": "c", "object": "chat.completion.chunk", "model": req.Model + "-served", "choices": []any{}, "usage": usage})
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func readAnthropic(body []byte) Request {
	var in struct {
		Model     string                  `json:"model"`
		MaxTokens int                     `json:"max_tokens"`
		Stream    bool                    `json:"stream"`
		System    []struct{ Text string } `json:"system"`
		Messages  []struct {
			Content []struct{ Text string }
		}
	}
	_ = json.Unmarshal(body, &in) // a test sees what is missing
	r := Request{Model: in.Model, MaxTokens: in.MaxTokens, Stream: in.Stream}
	if len(in.System) > 0 {
		r.System = in.System[0].Text
	}
	if len(in.Messages) > 0 && len(in.Messages[0].Content) > 0 {
		r.User = in.Messages[0].Content[0].Text
	}
	return r
}

func writeAnthropic(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	if reply.Status != 0 {
		failed(w, reply.Status, map[string]any{"type": "error", "error": map[string]any{"type": reply.Code, "message": "it echoes: " + req.User}})
		return
	}
	finish := map[string]string{"": "end_turn", "stop": "end_turn", "length": "max_tokens"}[reply.Finish]
	if finish == "" {
		finish = reply.Finish
	}
	if reply.Refusal {
		finish = "refusal"
	}
	message := map[string]any{
		"id": "m", "type": "message", "role": "assistant", "model": req.Model + "-served", "content": []any{},
		"stop_reason": nil, "usage": map[string]any{"input_tokens": 1000, "output_tokens": 1},
	}
	if reply.Untold {
		delete(message, "usage")
	}
	if reply.Plain || !req.Stream {
		message["content"] = []any{map[string]any{"type": "text", "text": reply.Text}}
		message["stop_reason"] = finish
		if !reply.Untold {
			message["usage"] = map[string]any{"input_tokens": 1000, "output_tokens": 100}
		}
		document(w, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", map[string]any{"type": "message_start", "message": message})
	event(w, "content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	ok := parts(w, r, reply, func(text string) {
		event(w, "content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]any{"type": "text_delta", "text": text}})
	})
	if !ok {
		return
	}
	if reply.InStream != "" {
		event(w, "error", map[string]any{"type": "error", "error": map[string]any{"type": reply.InStream, "message": "it echoes: " + req.User}})
		return
	}
	event(w, "content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	delta := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": finish}, "usage": map[string]any{"output_tokens": 100}}
	if reply.Untold {
		delete(delta, "usage")
	}
	event(w, "message_delta", delta)
	event(w, "message_stop", map[string]any{"type": "message_stop"})
}

// parts sends the text in two halves and misbehaves between them.
func parts(w http.ResponseWriter, r *http.Request, reply Reply, send func(string)) bool {
	runes := []rune(reply.Text)
	send(string(runes[:len(runes)/2]))
	switch {
	case reply.Hang:
		<-r.Context().Done()
		return false
	case reply.Cut:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return false
	}
	send(string(runes[len(runes)/2:]))
	return true
}

func failed(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

func document(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

func event(w http.ResponseWriter, name string, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", raw)
	_ = http.NewResponseController(w).Flush() // the client may have left
}

var (
	mark     = regexp.MustCompile(`END ([0-9a-f]{16})`)
	demanded = regexp.MustCompile(`must be there letter for letter: (.*)`)
	asked    = regexp.MustCompile(`(?m)^\[\d+\] [^\n]*?\buser(?: \([^)]*\))?: (.*)`)
	pending  = regexp.MustCompile(`## Pending user asks\n\s*- (.*)`)
)

// Mark is the line that a prompt wants an answer to end with.
func Mark(prompt string) string { return mark.FindString(prompt) }

// Summary answers a prompt as a good model would: short, in the form asked for.
// extra is one more point.
func Summary(prompt, extra string) string {
	ask := ""
	if m := asked.FindAllStringSubmatch(prompt, -1); m != nil {
		ask = m[len(m)-1][1]
	} else if m := pending.FindAllStringSubmatch(prompt, -1); m != nil {
		ask = m[len(m)-1][1]
	}
	if words := strings.Fields(ask); len(words) > 12 {
		ask = strings.Join(words[:12], " ")
	}
	ids := ""
	if m := demanded.FindStringSubmatch(prompt); m != nil {
		ids = m[1]
	}
	point := func(s string) string {
		if s == "" {
			s = "none"
		}
		return "- " + s + "\n"
	}
	if !strings.Contains(prompt, "Exactly these headings") {
		return point(ask) + point(extra) + point(ids) + Mark(prompt)
	}
	return "## Decisions\n" + point(extra) + "## Open TODOs\n- none\n## Constraints/Rules\n- none\n## Pending user asks\n" +
		point(ask) + "## Exact identifiers\n" + point(ids) + Mark(prompt)
}
