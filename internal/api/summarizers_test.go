package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/store"
)

// board is one question, as a store that workers share would hold it.
type board struct {
	api.Summarization
	job    store.HostJob
	leased bool
	got    store.HostAnswer
	reason string
}

func (b *board) SummarizerStates(context.Context, string) ([]store.SummarizerState, error) {
	return []store.SummarizerState{
		{Name: "gone", State: "closed", Today: store.Spend{Calls: 2}},
		{Name: "long gone", State: "open", OpenUntil: time.Unix(1_800_000_000, 0), Failures: 9},
		{Name: "m", State: "open", Failures: 3, OpenUntil: time.Unix(1_800_000_000, 0), Err: "down (500)", Today: store.Spend{Calls: 4, CostMicros: 7}},
	}, nil
}

func (b *board) SpentToday(context.Context, string, int64) (store.TenantSpend, error) {
	return store.TenantSpend{CostMicros: 7, LimitMicros: 9, Resets: time.Unix(1_800_000_000, 0).UTC()}, nil
}

func (b *board) LeaseHostJob(_ context.Context, _, owner string, _ []string, _ time.Duration) (store.HostJob, bool, error) {
	if b.leased || owner != "gw" {
		return store.HostJob{}, false, nil
	}
	b.leased = true
	return b.job, true, nil
}

func (b *board) AnswerHostJob(_ context.Context, _ string, id uuid.UUID, a store.HostAnswer) (bool, error) {
	if id != b.job.ID {
		return false, store.ErrUnknownJob
	}
	first := b.got == store.HostAnswer{}
	b.got = a
	return first, nil
}

func (b *board) FailHostJob(_ context.Context, _ string, id uuid.UUID, reason string) (bool, error) {
	if id != b.job.ID {
		return false, store.ErrUnknownJob
	}
	b.reason = reason
	return true, nil
}

func withBoard(t *testing.T) (*board, *api.API) {
	t.Helper()
	b := &board{job: store.HostJob{
		ID: uuid.MustParse("0190aaaa-0000-7000-8000-000000000001"), SessionKey: "k", Model: "house", System: "s", Prompt: "p",
		MaxTokens: 9, Deadline: time.Unix(1_800_000_000, 0),
	}}
	_, a := withSession(t, func(c *api.Config) {
		c.Summarization = b
		c.Summarizers = func(string) []api.SummarizerRow {
			return []api.SummarizerRow{{Name: "m", Kind: "openai", Model: "x"}, {Name: "n", Kind: "host"}}
		}
	})
	return b, a
}

func TestSummarizersInTheOrderInWhichTheyAreAsked(t *testing.T) {
	t.Parallel()
	_, a := withBoard(t)
	w := ask(a, http.MethodGet, "/v1/summarizers", "")
	var list api.SummarizerList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK || len(list.Summarizers) != 3 {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	if s := list.Spend; s == nil || s.CostMicros != 7 || s.LimitMicros != 9 || s.ResetsAt.Unix() != 1_800_000_000 {
		t.Errorf("the tenant's spend: %s", w.Body)
	}
	m, n, gone := list.Summarizers[0], list.Summarizers[1], list.Summarizers[2]
	if m.Name != "m" || m.Kind != "openai" || m.State != "open" || m.OpenUntil == nil || m.Failures != 3 || m.Today.Calls != 4 || m.Today.CostMicros != 7 {
		t.Errorf("%+v", m)
	}
	if n.Name != "n" || n.State != "closed" || gone.Name != "gone" || gone.Kind != "" {
		t.Errorf("%+v, %+v", n, gone)
	}
}

func TestAGatewayTakesAQuestionAndAnswers(t *testing.T) {
	t.Parallel()
	b, a := withBoard(t)
	w := ask(a, http.MethodPost, "/v1/summarization/lease", `{"owner":"gw"}`)
	const want = `{"id":"0190aaaa-0000-7000-8000-000000000001","sessionKey":"k","model":"house","request":{"system":"s","prompt":"p","maxTokens":9},"deadline":"2027-01-15T08:00:00Z"}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != want {
		t.Fatalf("%d %s", w.Code, got)
	}
	if w := ask(a, http.MethodPost, "/v1/summarization/lease", `{"owner":"gw","waitMs":1}`); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	path := "/v1/summarization/" + b.job.ID.String()
	for _, accepted := range []string{`{"accepted":true}`, `{"accepted":false}`} {
		w := ask(a, http.MethodPost, path+"/answer", `{"text":"a\u0000b","model":"house-2","usage":{"inputTokens":3,"outputTokens":2}}`)
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != accepted {
			t.Errorf("%d %s", w.Code, got)
		}
	}
	if want := (store.HostAnswer{Text: "ab", Model: "house-2", Finish: "stop", InputTokens: 3, OutputTokens: 2}); b.got != want {
		t.Errorf("%+v", b.got)
	}
	if w := ask(a, http.MethodPost, path+"/fail", `{"reason":"`+strings.Repeat("x", 5000)+`"}`); w.Code != http.StatusOK || len(b.reason) != 1000 {
		t.Errorf("%d, %d bytes of reason", w.Code, len(b.reason))
	}
}

func TestWhatGatewaysGetWrong(t *testing.T) {
	t.Parallel()
	b, a := withBoard(t)
	id := b.job.ID.String()
	for _, tc := range []struct {
		path, body string
		status     int
	}{
		{"/v1/summarization/lease", `{}`, 422},
		{"/v1/summarization/lease", `{"owner":"` + strings.Repeat("x", 300) + `"}`, 422},
		{"/v1/summarization/lease", `{"owner":"a\u0000"}`, 422},
		{"/v1/summarization/lease", `{"owner":"a","models":["\u0000"]}`, 422},
		{"/v1/summarization/lease", `{"owner":"a","waitMs":-1}`, 422},
		{"/v1/summarization/lease", `[`, 400},
		{"/v1/summarization/" + id + "/answer", `{"text":"x","finishReason":"tired"}`, 422},
		{"/v1/summarization/" + id + "/answer", `{"text":"x","usage":{"inputTokens":-1}}`, 422},
		{"/v1/summarization/nothing/answer", `{"text":"x"}`, 404},
		{"/v1/summarization/" + uuid.NewString() + "/answer", `{"text":"x"}`, 404},
		{"/v1/summarization/" + uuid.NewString() + "/fail", `{}`, 404},
	} {
		if w := ask(a, http.MethodPost, tc.path, tc.body); w.Code != tc.status {
			t.Errorf("%s %.60s: %d, want %d: %s", tc.path, tc.body, w.Code, tc.status, w.Body)
		}
	}
}
