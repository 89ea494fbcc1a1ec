package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/testdb"
)

// TestNoRouteCrossesTheBorder calls every route of the OpenAPI document with
// another tenant's key about a session that it does not have, and then looks
// whether that session is as it was.
func TestNoRouteCrossesTheBorder(t *testing.T) {
	t.Parallel()
	const marker = "zebracontent"
	n := serveIn(t, noEnv, "serve", "--worker", "--row-security", "on", "--listen", "127.0.0.1:0", "--keys", "mine=acme,theirs=umbrella",
		"--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	ask := func(ctx context.Context, key, method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return res.StatusCode, string(raw)
	}
	must := func(key, method, path, body string) string {
		t.Helper()
		status, answer := ask(t.Context(), key, method, path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}

	// A session with a bit of everything.
	const session = "/v1/sessions/" + marker + "-key"
	var batch []string
	for range 30 {
		batch = append(batch, `{"role":"user","content":"`+strings.Repeat(marker+" asks. ", 20)+`"}`, `{"role":"assistant","content":"`+strings.Repeat(marker+" answers. ", 20)+`"}`)
	}
	must("mine", "POST", session+"/ingest-batch", `{"sessionId":"host-1","messages":[`+strings.Join(batch, ",")+`]}`)
	must("mine", "POST", session+"/compact", `{"tokenBudget":2000,"force":true}`)
	must("mine", "POST", session+"/fork", `{"newSessionKey":"`+marker+`-child","atSeq":10}`)
	must("mine", "POST", session+"/lease", `{"owner":"`+marker+`","ttlMs":600000}`)
	before := must("mine", "GET", session+"/events?limit=500", "") + must("mine", "GET", session+"/summaries", "")

	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Security    []any
			Responses   map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(must("mine", "GET", "/openapi.json", "")), &doc); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"ingest": `{"message":{"role":"user","content":"x"}}`, "ingestBatch": `{"messages":[{"role":"user","content":"x"}]}`,
		"commitTurn": `{"advancementKey":"k","messages":[{"role":"user","content":"x"}]}`, "afterTurn": `{"messages":[],"prePromptMessageCount":0}`,
		"assemble": `{"tokenBudget":100000}`, "compact": `{"force":true,"tokenBudget":100000}`, "bootstrap": `{"sessionId":"host-2"}`,
		"rewind": `{"toSeq":1}`, "fork": `{"newSessionKey":"stolen","atSeq":10}`, "takeLease": `{"owner":"thief","ttlMs":1000}`,
		"transcript": `{"sessionId":"host-1","cursor":"c","entries":[]}`, "endSubagent": `{"reason":"deleted"}`,
		"prepareSubagent": `{"childSessionKey":"c","contextMode":"fork"}`,
	}
	queries := map[string]string{
		"readTranscript": "?sessionId=host-1", "search": "?q=" + marker, "listAudit": "?sessionKey=" + marker + "-key", "releaseLease": "?token=1",
		"listSessions": "?prefix=" + marker, "eraseSessions": "?keyPrefix=" + marker,
	}
	// The session key itself is asked for, so answers may say it; nothing more.
	walked := 0
	for path, byMethod := range doc.Paths {
		for method, op := range byMethod {
			if op.Security == nil {
				continue
			}
			walked++
			target := strings.NewReplacer("{key}", marker+"-key", "{engine}", "x", "{id}", "1", "{child}", marker+"-child").Replace(path) + queries[op.OperationID]
			body := ""
			if method == "post" {
				body = "{}"
			}
			if b := bodies[op.OperationID]; b != "" {
				body = b
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if strings.HasSuffix(path, "/stream") { // those that exist would not end
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			status, answer := ask(ctx, "theirs", strings.ToUpper(method), target, body)
			cancel()
			if status >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", op.OperationID, status, answer)
			}
			said := strings.NewReplacer(marker+"-key", "", marker+"-child", "").Replace(answer)
			if strings.Contains(said, marker) || strings.Contains(said, "acme") || strings.Contains(said, `"seq":60`) {
				t.Errorf("%s tells of another tenant's session: %s", op.OperationID, answer)
			}
			// What the walk itself opened for the other tenant goes before the next call.
			ask(t.Context(), "theirs", http.MethodDelete, session, "")
		}
	}
	if walked < 30 {
		t.Errorf("%d routes were walked", walked)
	}
	if status, _ := ask(t.Context(), "theirs", http.MethodGet, session, ""); status != http.StatusNotFound {
		t.Errorf("another tenant's session: %d", status)
	}
	if after := must("mine", "GET", session+"/events?limit=500", "") + must("mine", "GET", session+"/summaries", ""); after != before {
		t.Error("the session is another one after the walk")
	}
	must("mine", "GET", "/v1/sessions/"+marker+"-child", "")
}
