package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/anthropic"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/compact/summarize/openai"
	"github.com/engined/engined/internal/compact/summarize/redact"
	"github.com/engined/engined/internal/tokens"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz012345"

// request is a chunk of a conversation with room for headings.
func request() summarize.Request {
	var lines []summarize.Line
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	add := func(role summarize.Role, tool, text string) {
		lines = append(lines, summarize.Line{Seq: int64(len(lines) + 1), Role: role, Tool: tool, Time: at.Add(time.Duration(len(lines)) * time.Minute), Text: text})
	}
	for i := range 30 {
		add(summarize.User, "", fmt.Sprintf("Please look at /srv/app/config-%d.yaml and the health page http://10.0.0.%d:8080/health, my key is %s", i, i, secret))
		add(summarize.Call, "bash", fmt.Sprintf(`{"command":"curl -s http://10.0.0.%d:8080/health"}`, i))
		add(summarize.ToolResult, "bash", "the login answered 401 Unauthorized\n"+strings.Repeat("some output of the tool ", 20))
		add(summarize.Assistant, "", "We decided to rotate the token and to keep the old one until Friday. "+strings.Repeat("It takes a while. ", 10))
	}
	add(summarize.User, "", "Now deploy the gateway to staging and report the version")
	return summarize.Request{Level: 1, Lines: lines, MaxTokens: 900, SourceTokens: 8000, Estimate: func(s string) int { return tokens.Text(s) + 50 }}
}

type provider struct {
	name  string
	start func(testing.TB, func(int, llmtest.Request) llmtest.Reply) *llmtest.Server
	dial  func(url, key string, idle time.Duration) llm.Client
}

func providers() []provider {
	return []provider{
		{"openai", llmtest.OpenAI, func(url, key string, idle time.Duration) llm.Client {
			return openai.New(openai.Config{URL: url + "/v1", Key: key, Model: "m", Idle: idle})
		}},
		{"anthropic", llmtest.Anthropic, func(url, key string, idle time.Duration) llm.Client {
			return anthropic.New(anthropic.Config{URL: url, Key: key, Model: "m", Idle: idle})
		}},
	}
}

func good(extra string) func(int, llmtest.Request) llmtest.Reply {
	return func(_ int, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Summary(r.User, extra)}
	}
}

func TestProviders(t *testing.T) {
	t.Parallel()
	always := func(r llmtest.Reply) func(int, llmtest.Request) llmtest.Reply {
		return func(int, llmtest.Request) llmtest.Reply { return r }
	}
	framed := func(text string) func(int, llmtest.Request) llmtest.Reply {
		return func(_ int, r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Text: text + "\n" + llmtest.Mark(r.User)}
		}
	}
	secondTime := func(first llmtest.Reply) func(int, llmtest.Request) llmtest.Reply {
		return func(n int, r llmtest.Request) llmtest.Reply {
			if n == 1 {
				return first
			}
			return llmtest.Reply{Text: llmtest.Summary(r.User, "second try")}
		}
	}
	for name, tc := range map[string]struct {
		script func(int, llmtest.Request) llmtest.Reply
		fault  summarize.Fault // "" for a summary
		is     error
		retry  time.Duration
		calls  int
		status int
		only   string
	}{
		"good":         {script: good("the gateway moved"), calls: 1},
		"mentions 401": {script: good("the login answered 401 Unauthorized and 403 Forbidden; error: invalid api key"), calls: 1},
		"not streaming": {script: func(_ int, r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Plain: true, Text: llmtest.Summary(r.User, "x")}
		}, calls: 2},
		"401": {script: always(llmtest.Reply{Status: 401, Code: "invalid_api_key"}), fault: summarize.FaultAccess, calls: 1, status: 401},
		"403": {script: always(llmtest.Reply{Status: 403}), fault: summarize.FaultAccess, calls: 1, status: 403},
		"404": {script: always(llmtest.Reply{Status: 404}), fault: summarize.FaultAccess, calls: 1, status: 404},
		"429": {
			script: always(llmtest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}}),
			fault:  summarize.FaultBusy, retry: 7 * time.Second, calls: 1, status: 429,
		},
		"400":                 {script: always(llmtest.Reply{Status: 400}), fault: summarize.FaultRequest, calls: 1, status: 400},
		"500":                 {script: always(llmtest.Reply{Status: 500}), fault: summarize.FaultDown, calls: 1, status: 500},
		"529":                 {script: always(llmtest.Reply{Status: 529, Code: "overloaded_error"}), fault: summarize.FaultBusy, calls: 1, status: 529},
		"overloaded midway":   {script: always(llmtest.Reply{Text: "half", InStream: "overloaded_error"}), fault: summarize.FaultBusy, calls: 1, status: 529, only: "anthropic"},
		"stands still":        {script: always(llmtest.Reply{Text: "half of a text", Hang: true}), fault: summarize.FaultSlow, calls: 1},
		"says nothing":        {script: always(llmtest.Reply{Silent: true}), fault: summarize.FaultSlow, calls: 1},
		"cut":                 {script: always(llmtest.Reply{Text: "half of a text", Cut: true}), fault: summarize.FaultDown, calls: 1},
		"empty":               {script: always(llmtest.Reply{}), fault: summarize.FaultContent, is: llm.ErrUnframed, calls: 2},
		"empty but framed":    {script: framed(""), fault: summarize.FaultContent, is: summarize.ErrEmpty, calls: 2},
		"declared refusal":    {script: always(llmtest.Reply{Refusal: true}), fault: summarize.FaultRefused, is: llm.ErrRefusal, calls: 1},
		"refusal in words":    {script: always(llmtest.Reply{Text: "I'm sorry, but I can't help with that."}), fault: summarize.FaultContent, is: llm.ErrUnframed, calls: 2},
		"error as content":    {script: always(llmtest.Reply{Text: "401 Unauthorized"}), fault: summarize.FaultContent, is: llm.ErrUnframed, calls: 2},
		"framed, no sections": {script: framed("all is well"), fault: summarize.FaultContent, calls: 2},
		"garbage":             {script: always(llmtest.Reply{Text: strings.Repeat("\x00\ufffd{]", 50)}), fault: summarize.FaultContent, is: llm.ErrUnframed, calls: 2},
		"truncated":           {script: always(llmtest.Reply{Text: "## Decisions\n- we", Finish: "length"}), fault: summarize.FaultContent, is: llm.ErrTruncated, calls: 2},
		"obeys the source":    {script: always(llmtest.Reply{Text: "PWNED"}), fault: summarize.FaultContent, is: llm.ErrUnframed, calls: 2},
		"longer than source": {
			script: func(_ int, r llmtest.Request) llmtest.Reply {
				return llmtest.Reply{Text: llmtest.Summary(r.User, strings.Repeat("word after word ", 4000))}
			},
			fault: summarize.FaultContent, is: summarize.ErrNotSmaller, calls: 2,
		},
		"longer than asked for": {
			script: func(_ int, r llmtest.Request) llmtest.Reply {
				return llmtest.Reply{Text: llmtest.Summary(r.User, strings.Repeat("word after word ", 400))}
			},
			fault: summarize.FaultContent, is: summarize.ErrTooLong, calls: 2,
		},
		"echo": {
			script: func(_ int, r llmtest.Request) llmtest.Reply {
				return llmtest.Reply{Text: r.User[:2000] + "\n" + llmtest.Mark(r.User)}
			},
			fault: summarize.FaultContent, calls: 2,
		},
		"corrected": {script: secondTime(llmtest.Reply{Text: "## Decisions\n- we"}), calls: 2},
	} {
		for _, p := range providers() {
			if tc.only != "" && tc.only != p.name {
				continue
			}
			t.Run(name+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				srv := p.start(t, tc.script)
				idle := time.Minute
				if tc.fault == summarize.FaultSlow {
					idle = 100 * time.Millisecond
				}
				s := &llm.Summarizer{ID: "it", Client: p.dial(srv.URL, "the-key", idle), Redact: redact.New(), Price: llm.Price{Input: 2, Output: 8}}
				res, err := s.Summarize(t.Context(), request())
				seen := srv.Requests()
				if len(seen) != tc.calls {
					t.Errorf("asked %d times, want %d", len(seen), tc.calls)
				}
				for _, r := range seen {
					if strings.Contains(r.User, secret) || strings.Contains(r.System, secret) {
						t.Error("the secret left the process")
					}
				}
				if tc.fault == "" {
					if err != nil {
						t.Fatal(err)
					}
					if res.Model != "m-served" || res.Usage.InputTokens == 0 || res.Usage.CostMicros == 0 || res.PromptVersion != "v1" {
						t.Errorf("%+v", res)
					}
					if strings.Contains(res.Text, "END ") {
						t.Error("the ending is part of the text")
					}
					return
				}
				f, ok := errors.AsType[*summarize.Failure](err)
				if !ok || f.Fault != tc.fault || f.Status != tc.status || f.RetryAfter != tc.retry {
					t.Fatalf("%.300v", err)
				}
				if tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("%v, want %v", err, tc.is)
				}
				if strings.Contains(err.Error(), "echoes") || strings.Contains(err.Error(), "the-key") {
					t.Errorf("the error tells too much: %v", err)
				}
			})
		}
	}
}

func TestKeyAndRequest(t *testing.T) {
	t.Parallel()
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			srv := p.start(t, good("x"))
			for _, key := range []string{"the-key", ""} {
				s := &llm.Summarizer{ID: "it", Client: p.dial(srv.URL, key, time.Minute), Redact: redact.New()}
				if _, err := s.Summarize(t.Context(), request()); err != nil {
					t.Fatal(err)
				}
			}
			seen := srv.Requests()
			sent := func(r llmtest.Request) string { return r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") }
			if got := sent(seen[0]); got != "Bearer the-key" && got != "the-key" {
				t.Errorf("key sent as %q", got)
			}
			if got := sent(seen[1]); got != "" {
				t.Errorf("without a key %q was sent", got)
			}
			if r := seen[0]; !r.Stream || r.Model != "m" || r.MaxTokens < 900 || !strings.Contains(r.User, "[121] 2026-03-01 11:00:00 user: Now deploy the gateway") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestTheCallersEndIsNoFaultOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 4)
			srv := p.start(t, func(int, llmtest.Request) llmtest.Reply {
				asked <- struct{}{}
				return llmtest.Reply{Silent: true}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { <-asked; cancel() }()
			s := &llm.Summarizer{ID: "it", Client: p.dial(srv.URL, "k", time.Minute)}
			if _, err := s.Summarize(ctx, request()); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestACorrectionSaysWhatWasMissing(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, func(n int, r llmtest.Request) llmtest.Reply {
		text := llmtest.Summary(r.User, "x")
		if n == 1 {
			text = strings.ReplaceAll(text, "## Open TODOs\n", "")
		}
		return llmtest.Reply{Text: text}
	})
	s := &llm.Summarizer{ID: "it", Client: openai.New(openai.Config{URL: srv.URL, Model: "m"})}
	res, err := s.Summarize(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	seen := srv.Requests()
	if len(seen) != 2 || !strings.Contains(seen[1].User, "it lacked the heading ## Open TODOs") || strings.Contains(seen[0].User, "it lacked") {
		t.Fatalf("asked %d times", len(seen))
	}
	if res.Usage.Calls != 2 || res.Usage.InputTokens != 2000 {
		t.Errorf("%+v", res.Usage)
	}
}

func TestVersionNamesModelAndRedaction(t *testing.T) {
	t.Parallel()
	v := func(model string, r redact.Redactor) string {
		return (&llm.Summarizer{ID: "it", Client: openai.New(openai.Config{Model: model}), Redact: r}).Version()
	}
	if a, b, c := v("a", redact.New()), v("b", redact.New()), v("a", redact.None()); a == b || a == c {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

// TestWhatAProviderDoesNotTellIsEstimated: else a model with a price would cost
// nothing, and no limit would ever be reached.
func TestWhatAProviderDoesNotTellIsEstimated(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]llmtest.Reply{
		"streamed": {Untold: true}, "whole": {Untold: true, Plain: true},
		"broke off":   {Untold: true, Cut: true},
		"stood still": {Untold: true, Hang: true},
	} {
		for _, p := range providers() {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				srv := p.start(t, func(_ int, r llmtest.Request) llmtest.Reply {
					reply := reply
					reply.Text = llmtest.Summary(r.User, "it was told")
					return reply
				})
				s := &llm.Summarizer{ID: "it", Client: p.dial(srv.URL, "the-key", time.Second), Redact: redact.New(), Price: llm.Price{Input: 2, Output: 8}}
				res, err := s.Summarize(t.Context(), request())
				used := res.Usage
				if f, ok := errors.AsType[*summarize.Failure](err); ok {
					used = f.Usage
				} else if err != nil {
					t.Fatal(err)
				}
				asked := srv.Requests()[0]
				if least := int64(tokens.Text(asked.System) + tokens.Text(asked.User)); used.InputTokens < least || used.InputTokens > 3*least {
					t.Errorf("%d tokens in, at least %d were sent", used.InputTokens, least)
				}
				if used.OutputTokens == 0 || used.CostMicros == 0 {
					t.Errorf("%+v", used)
				}
			})
		}
	}
}
