package llm_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/llm"
)

// TestEndlessAnswersEnd: a provider that streams for ever is cut off by size, not
// by what memory there is.
func TestEndlessAnswersEnd(t *testing.T) {
	t.Parallel()
	events := map[string]string{
		"openai":    `data: {"choices":[{"index":0,"delta":{"content":%q}}]}` + "\n\n",
		"anthropic": "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}` + "\n\n",
	}
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			event := fmt.Sprintf(events[p.name], strings.Repeat("word ", 8000))
			sent := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for {
					n, err := io.WriteString(w, event)
					if sent += n; err != nil {
						return
					}
				}
			}))
			defer srv.Close()
			_, err := p.dial(srv.URL, "the-key", time.Minute).Complete(t.Context(), llm.Call{System: "s", User: "u", MaxTokens: 100})
			f, ok := errors.AsType[*summarize.Failure](err)
			if !ok || f.Fault != summarize.FaultDown || !strings.Contains(err.Error(), "larger than any summary") {
				t.Errorf("%v", err)
			}
			srv.Close()
			if sent > 128<<20 {
				t.Errorf("%d bytes were taken", sent)
			}
		})
	}
}

// TestRedirectsAreToldWithoutTheirTarget: what a provider writes into Location
// may be what it was sent.
func TestRedirectsAreToldWithoutTheirTarget(t *testing.T) {
	t.Parallel()
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/?was=what-the-user-said", http.StatusFound))
			defer srv.Close()
			_, err := p.dial(srv.URL, "the-key", time.Minute).Complete(t.Context(), llm.Call{System: "s", User: "u", MaxTokens: 100})
			if err == nil || strings.Contains(err.Error(), "said") || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%v", err)
			}
		})
	}
}
