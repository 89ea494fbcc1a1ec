package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// answers are what the fake node says, by method and escaped path.
var answers = map[string]string{
	"GET /v1/sessions": `{"sessions":[
{"sessionKey":"agent:main","head":1234,"epoch":3,"tokens":98765,"debt":98765,"tokenBudget":128000,"updatedAt":"2026-01-02T11:58:00Z","new":"field"},
{"sessionKey":"日本/語","head":2,"epoch":1,"tokens":12,"debt":0,"tokenBudget":0,"updatedAt":"2025-12-30T12:00:00Z"},
{"sessionKey":"import:viewer-fe5e1c67-53e7-4862-81ae-d0e013e3270b:side-0d692b0f-17cb-4fd0-94fb-215dabcef803","head":65,"epoch":1,"tokens":12764,"debt":0,"tokenBudget":0,"updatedAt":"2026-01-02T11:58:00Z"}],"next":null}`,
	"GET /v1/sessions/agent:main": `{"sessionKey":"agent:main","head":1234,"hostHead":1233,"epoch":3,"tokens":98765,"debt":0,"tokenBudget":0,"createdAt":"2025-12-30T11:58:00.123456Z","updatedAt":"2026-01-02T11:58:00.654321Z","laterField":{"parent":null},"lineage":{"parent":{"sessionKey":"agent:main:main","kind":"fork","atSeq":40,"createdAt":"2026-01-02T11:58:00Z"},"children":[{"kind":"subagent","sessionKey":"agent:main:c1","contextMode":"isolated","atSeq":1200,"endReason":"completed"}]},` +
		`"attempts":[{"epoch":2,"worker":"w1","outcome":"compacted","startedAt":"2026-01-02T11:57:00Z","endedAt":"2026-01-02T11:57:01.25Z"}]}`,
	"GET /v1/sessions/agent:main/summaries": `{"summaries":[{"id":1230,"summarizer":"extractive","degraded":true,"live":true,"level":1,"epoch":3,"tokens":700,"text":"## Goal\nShip it"},` +
		`{"id":900,"summarizer":"small","live":false,"level":1,"epoch":2,"tokens":600,"text":"merged"},` +
		`{"id":1235,"summarizer":"small","live":true,"level":2,"epoch":3,"tokens":500,"text":"newer","costMicros":1500},` +
		`{"id":1236,"summarizer":"extractive","degraded":true,"live":true,"level":1,"epoch":3,"tokens":400,"text":"newest"}]}`,
	"GET /v1/sessions/agent:main/events": `{"events":[
{"seq":1,"type":"message.appended","sessionKey":"agent:main","epoch":1,"role":"user","tokens":8,"message":{ "role":"user","content":"Fix \u001b[1mthis\nplease" }},
{"seq":2,"type":"message.appended","sessionKey":"agent:main","epoch":1,"role":"assistant","tokens":1500,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}]}},
{"seq":3,"type":"epoch.rotated","sessionKey":"agent:main","epoch":2,"data":{"base":1,"epoch":2,"cause":"compaction","live":[4],"factorMilli":1000,"tokensBefore":98765,"tokensAfter":43210}}],"next":null}`,
	"POST /v1/sessions/agent:main/assemble": `{"messages":[{"role":"compactionSummary","summary":"Ship it"},{"role":"user","content":"and now?"}],"estimatedTokens":1234,` +
		`"contextProjection":{"mode":"per_turn","epoch":"3","fingerprint":"abc"},"head":1234,"epoch":3,"leftOut":4,"overBudget":{"budget":1000,"needed":1234,"items":[{"seq":1234,"tokens":1100}]},` +
		`"explanation":[{"seq":1230,"kind":"summary","tokens":134,"shown":true,"reason":"summary of older messages"},{"seq":1234,"kind":"message","tokens":1100,"shown":true,"reason":"newest user message, always shown"},` +
		`{"seq":1225,"kind":"message","tokens":7,"shown":false,"reason":"older than what fits the budget"},` +
		`{"seq":1227,"kind":"message","tokens":1000,"shown":false,"reason":"older than what fits the budget"},{"seq":1228,"kind":"message","tokens":20,"shown":false,"reason":"older than what fits the budget"},` +
		`{"seq":1229,"kind":"message","tokens":50,"shown":false,"reason":"older than what fits the budget"}]}`,
	"GET /v1/sessions/recalls": `{"sessionKey":"recalls"}`,
	"POST /v1/sessions/recalls/assemble": `{"messages":[{"role":"user","content":"[engined: …]"},{"role":"user","content":"<passages>"},{"role":"user","content":"and now?"}],"estimatedTokens":90,` +
		`"contextProjection":{"mode":"per_turn","epoch":"3","fingerprint":"abc"},"head":9,"epoch":3,` +
		`"explanation":[{"seq":0,"kind":"notice","tokens":23,"shown":true,"reason":"no user message to begin with"},{"seq":2,"kind":"passage","tokens":30,"shown":true,"reason":"older passage that matches what is asked"},` +
		`{"seq":4,"kind":"passage","tokens":20,"shown":true,"reason":"older passage that matches what is asked"},{"seq":9,"kind":"message","tokens":17,"shown":true,"reason":"newest user message, always shown"}]}`,
	"POST /v1/sessions/dry/compact": `{"ok":true,"compacted":false,"reason":"dry run","epoch":3,"result":{"tokensBefore":98765,"tokensAfter":43210,"details":{"epoch":3,"steps":[` +
		`{"id":0,"level":1,"covers":[{"from":1,"to":40}],"sourceTokens":9000,"maxTokens":1200},{"id":1,"level":2,"covers":[{"from":1,"to":40},{"from":44,"to":90}],"sourceTokens":2400,"maxTokens":800}],"calls":2,"rounds":2,"inputTokens":13200,"outputTokens":2000,"estimatedCostMicros":8480}}}`,
	"GET /v1/sessions/dry":                 `{"sessionKey":"dry"}`,
	"POST /v1/sessions/agent:main/compact": `{"ok":true,"compacted":true,"result":{"tokensBefore":98765,"tokensAfter":43210},"epoch":4}`,
	"GET /v1/search": `{"hits":[
{"sessionKey":"agent:main","seq":7,"role":"toolResult","kind":"toolResult","tool":"bash","epoch":2,"at":"2026-01-02T11:58:00Z","active":true,"snippet":"…a\u001b[1m  b 静默\nis it","marks":[{"start":10,"end":12}],"score":1.5},
{"sessionKey":"日本/語","seq":1230,"role":"summary","kind":"summary","epoch":3,"at":"2025-12-30T12:00:00Z","active":false,"snippet":"needle","marks":[{"start":0,"end":6},{"start":4,"end":99}],"score":1}],
"next":"more","partial":false,"index":{"current":false}}`,
	"GET /v1/engines": `{"serving":"legacy","engines":[{"id":"legacy","owner":"core","name":"engined legacy","version":"1"},{"id":"lossless","owner":"core","name":"engined lossless","version":"1","ownsCompaction":true},` +
		`{"id":"x","owner":"remote:acme","name":"X","slot":"contextEngine","quarantine":"panic: oh\u001b[1m no"}],` +
		`"quarantines":[{"engineId":"x","operation":"assemble","reason":"panic: oh\u001b[1m no","failedAt":"2026-01-02T11:58:00Z","owner":"remote:acme"}]}`,
	"DELETE /v1/engines/a%2Fb/quarantine": `{"cleared":true}`,
	"DELETE /v1/engines/y/quarantine":     `{"cleared":false}`,
}

func fakeHTTP(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.Method+" "+r.URL.EscapedPath()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestListings(t *testing.T) {
	t.Parallel()
	url := fakeHTTP(t)
	for name, args := range map[string][]string{
		"sessions":        {"sessions"},
		"sessions-json":   {"sessions", "--json"},
		"show":            {"show", "agent:main"},
		"events":          {"events", "agent:main"},
		"events-json":     {"events", "agent:main", "--json"},
		"window":          {"window", "agent:main", "--budget", "1000"},
		"window-explain":  {"window", "agent:main", "--budget", "1000", "--explain"},
		"window-passages": {"window", "recalls", "--explain"},
		"diff-passages":   {"diff", "recalls", "--from", "9", "--json"},
		"window-json":     {"window", "agent:main", "--budget", "1000", "--json"},
		"grep":            {"grep", "静默", "--limit", "2", "--session", "agent:main"},
		"grep-json":       {"grep", "x", "--limit", "2", "--json"},
		"compact":         {"compact", "agent:main", "--force"},
		"compact-dry":     {"compact", "dry", "--dry-run"},
		"engines":         {"engines"},
		"engines-clear":   {"engines", "clear", "a/b"},
		"engines-fine":    {"engines", "clear", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := engined(t, append(args, "--url", url)...).ok(t)
			golden(t, name, got.out)
		})
	}
}

func TestTheImportTable(t *testing.T) {
	t.Parallel()
	reports := []*fileReport{
		{
			File: "logs/a.jsonl", New: 1234, AlreadyThere: 5, Skipped: map[string]int{"model_change": 2, "compaction": 1},
			Sessions: []sessionReport{{SessionKey: "import:a"}, {SessionKey: "import:a:agent-1"}},
			Broken:   []brokenLine{{9, "not a JSON object"}, {3, "not valid UTF-8"}},
		},
		{File: "b.json", err: os.ErrNotExist},
	}
	out := newOutput()
	if err := (&cli{out: out}).printImport(reports, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "import", out.String())
	if err := importFailure(reports); err == nil || err.Error() != "b.json: file does not exist" {
		t.Errorf("a file that could not be read: %v", err)
	}
	for _, cause := range []error{&fs.PathError{Op: "open", Path: "b.json", Err: os.ErrNotExist}, errors.New("read b.json: torn")} {
		if err := importFailure([]*fileReport{{File: "b.json", err: cause}}); err == nil || strings.Count(err.Error(), "b.json") != 1 {
			t.Errorf("the file is named not once: %v", err)
		}
	}
	if err := importFailure(reports[:1]); err != nil {
		t.Errorf("broken lines are a failure: %v", err)
	}
}

// golden compares with a file of testdata; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		writeFile(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
