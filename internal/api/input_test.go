package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
)

// posts are all routes with a body, each with one that is accepted.
func posts() map[string]string {
	const m = `{"role":"user","content":"hi"}`
	return map[string]string{
		"bootstrap":       `{"sessionId":"s","messages":[` + m + `]}`,
		"ingest":          `{"message":` + m + `}`,
		"ingest-batch":    `{"messages":[` + m + `]}`,
		"commit-turn":     `{"advancementKey":"t","messages":[` + m + `]}`,
		"after-turn":      `{"messages":[` + m + `],"prePromptMessageCount":0}`,
		"transcript":      `{"sessionId":"s","cursor":"c","entries":[{"type":"message","id":"e","message":` + m + `}]}`,
		"assemble":        `{"tokenBudget":1000}`,
		"compact":         `{"force":true}`,
		"maintain":        `{}`,
		"reset":           `{"keepFromSeq":1}`,
		"rewind":          `{"toSeq":1}`,
		"undo-compaction": `{}`,

		"fork":                 `{"newSessionKey":"f"}`,
		"subagents":            `{"childSessionKey":"c","contextMode":"fork","ttlMs":5}`,
		"subagents/c/rollback": `{}`,
		"subagents/c/ended":    `{"reason":"completed"}`,
	}
}

const known = "/v1/sessions/known"

func withSession(t testing.TB, change func(*api.Config)) (*fake, *api.API) {
	t.Helper()
	f := newFake()
	f.put("default", "known", 1, []byte(`{"role":"user","content":"hi"}`))
	return f, newAPI(t, f, change)
}

func TestAcceptedBodies(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for route, body := range posts() {
		for _, ct := range []string{"", "application/json", "application/json; charset=UTF-8", "application/x-www-form-urlencoded", "application/vnd.x+json"} {
			w := ask(a, http.MethodPost, known+"/"+route, " \r\n\t"+body+"\n", "Content-Type", ct)
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s as %q: %d %s", route, ct, w.Code, w.Body)
			}
		}
		// Unknown members are ignored, and repeated ones no fault.
		w := ask(a, http.MethodPost, known+"/"+route, `{"x":{"y":[1,null]},"x":2,`+strings.TrimPrefix(body, "{"))
		if body != "{}" && w.Code != http.StatusOK {
			t.Errorf("%s with unknown members: %d %s", route, w.Code, w.Body)
		}
	}
}

func TestOptionalBodies(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for _, route := range []string{"assemble", "compact", "maintain", "reset", "undo-compaction", "subagents/c/rollback"} {
		if w := ask(a, http.MethodPost, known+"/"+route, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
	for _, route := range []string{"bootstrap", "ingest", "ingest-batch", "commit-turn", "after-turn", "transcript", "rewind", "fork", "subagents", "subagents/c/ended"} {
		if slug, _ := problem(t, ask(a, http.MethodPost, known+"/"+route, "  ")); slug != "malformed" {
			t.Errorf("%s: %s", route, slug)
		}
	}
}

// TestUnreadableBodies: what is no JSON object is refused alike on every route.
func TestUnreadableBodies(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	cases := []struct {
		name, body string
		status     int
	}{
		{"garbage", `{`, 400},
		{"text", `hello`, 400},
		{"trailing garbage", `{} x`, 400},
		{"two values", `{}{}`, 400},
		{"single quotes", `{'a':1}`, 400},
		{"comment", `{} // done`, 400},
		{"byte order mark", "\ufeff{}", 400},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", 400},
		{"overlong UTF-8", "{\"a\":\"\xc0\x80\"}", 400},
		{"raw surrogate", "{\"a\":\"\xed\xa0\x80\"}", 400},
		{"raw NUL", "{\"a\":\"\x00\"}", 400},
		{"NaN", `{"a":NaN}`, 400},
		{"half an escape", `{"a":"\ud8"}`, 400},
		{"array", `[]`, 422},
		{"string", `"x"`, 422},
		{"number", `1`, 422},
		{"null", `null`, 422},
		{"too deep", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), 422},
		{"too deep and open", strings.Repeat(`[`, 200000), 422},
	}
	for route := range posts() {
		for _, tc := range cases {
			w := ask(a, http.MethodPost, known+"/"+route, tc.body)
			slug, p := problem(t, w)
			if w.Code != tc.status {
				t.Errorf("%s, %s: %d %s %+v", route, tc.name, w.Code, slug, p)
			}
		}
		for header, bad := range map[string][]string{
			"Content-Type":     {"text/plain", "multipart/form-data", "application/json; charset=utf-16", "text/html;;", "image/png"},
			"Content-Encoding": {"br", "deflate", "zstd", "gzip, gzip", "nonsense"},
		} {
			for _, v := range bad {
				w := ask(a, http.MethodPost, known+"/"+route, `{}`, header, v)
				if slug, _ := problem(t, w); slug != "unsupported-media-type" || w.Code != 415 {
					t.Errorf("%s with %s %s: %d %s", route, header, v, w.Code, slug)
				}
			}
		}
		w := ask(a, http.MethodPost, known+"/"+route, `{}`, "Content-Encoding", "gzip")
		if slug, _ := problem(t, w); slug != "malformed" {
			t.Errorf("%s: not gzip: %s", route, slug)
		}
	}
}

func TestMalformedTellsWhere(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	if _, p := problem(t, ask(a, http.MethodPost, known+"/ingest", `{"message":}`)); p.Offset != 12 {
		t.Errorf("problem %+v", p)
	}
	if _, p := problem(t, ask(a, http.MethodPost, known+"/ingest", "{\"m\":\"é\xff\"}")); p.Offset != 8 {
		t.Errorf("problem %+v", p)
	}
}

// TestBrokenContract: valid JSON that breaks the contract names the field.
func TestBrokenContract(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	long := strings.Repeat("k", 513)
	const m = `{"role":"user","content":"x"}`
	// For every route with the member, each of these is refused.
	members := map[string]struct {
		routes string
		values []string
	}{
		"sessionId":             {"transcript bootstrap ingest ingest-batch commit-turn after-turn assemble compact maintain reset rewind undo-compaction fork subagents subagents/c/rollback subagents/c/ended", []string{`1`, `{}`, `[]`, `true`, `"a\u0000b"`, `"` + long + `"`}},
		"gatewayId":             {"transcript bootstrap ingest ingest-batch commit-turn after-turn assemble compact maintain reset rewind undo-compaction", []string{`1`, `"\u0000"`, `"` + long + `"`}},
		"expectedHead":          {"transcript bootstrap ingest ingest-batch commit-turn after-turn compact reset rewind undo-compaction fork", []string{`-1`, `1.5`, `"1"`, `1e400`, `99999999999999999999`, `true`, `[]`}},
		"expectedEpoch":         {"transcript bootstrap ingest ingest-batch commit-turn after-turn compact reset rewind undo-compaction fork", []string{`-1`, `0.1`, `"1"`, `{}`}},
		"isHeartbeat":           {"ingest ingest-batch commit-turn after-turn", []string{`1`, `"true"`, `[]`}},
		"entries":               {"transcript", []string{`null`, `{}`, `"x"`, `1`, `[null]`, `[1]`, `["x"]`, `[[]]`, `[` + m + `,1]`}},
		"cursor":                {"transcript", []string{`1`, `{}`, `[]`, `true`}},
		"lifecycleRevision":     {"transcript", []string{`1`, `{}`, `"a\u0000b"`, `"` + long + `"`}},
		"idempotencyKey":        {"ingest", []string{`1`, `"` + long + `"`, `{}`}},
		"idempotencyKeys":       {"ingest-batch", []string{`"k"`, `[1]`, `[null]`, `["a","b"]`, `["` + long + `"]`, `{}`}},
		"message":               {"ingest", []string{`null`, `1`, `"x"`, `[]`, `true`}},
		"messages":              {"ingest-batch commit-turn", []string{`null`, `[]`, `{}`, `"x"`, `[null]`, `[1]`, `[[]]`, `[` + m + `,1]`}},
		"tokenBudget":           {"commit-turn after-turn assemble compact", []string{`0`, `-1`, `1.5`, `"9"`, `1e400`, `2147483648`, `99999999999999999999`, `[]`, `true`}},
		"usage":                 {"commit-turn after-turn", []string{`1`, `[]`, `{"input":-1}`, `{"input":"x"}`, `{"cacheRead":1.5}`, `{"cacheWrite":2147483648}`}},
		"runtimeContext":        {"commit-turn after-turn", []string{`1`, `[]`, `{"tokenBudget":0}`, `{"tokenBudget":"x"}`, `{"currentTokenCount":-1}`, `{"modelId":1}`}},
		"advancementKey":        {"commit-turn", []string{`""`, `null`, `1`, `"` + long + `"`}},
		"admission":             {"commit-turn", []string{`1`, `"x"`, `[]`}},
		"terminal":              {"commit-turn", []string{`1`, `"x"`, `[]`}},
		"asOfSeq":               {"assemble", []string{`0`, `-1`, `1.5`, `"1"`}},
		"availableTools":        {"assemble", []string{`{}`, `[1]`, `"x"`, `[["a"]]`}},
		"prompt":                {"assemble", []string{`1`, `[]`}},
		"explain":               {"assemble", []string{`1`, `"yes"`}},
		"force":                 {"compact", []string{`1`, `"yes"`}},
		"dryRun":                {"compact", []string{`1`}},
		"currentTokenCount":     {"compact", []string{`0`, `-1`, `"x"`, `1.5`}},
		"compactionTarget":      {"compact", []string{`"moon"`, `1`}},
		"keepFromSeq":           {"reset", []string{`0`, `-1`, `1.5`, `"1"`}},
		"toSeq":                 {"rewind", []string{`0`, `-1`, `1.5`, `"1"`, `null`}},
		"epoch":                 {"undo-compaction", []string{`0`, `-1`, `1.5`, `"1"`}},
		"reason":                {"maintain reset", []string{`1`, `[]`}},
		"nextSessionId":         {"reset", []string{`1`, `{}`, `"a\u0000b"`, `"` + long + `"`}},
		"newSessionKey":         {"fork", []string{`""`, `null`, `1`, `[]`, `"a\u0000"`, `"` + long + `"`}},
		"atSeq":                 {"fork", []string{`0`, `-1`, `1.5`, `"1"`}},
		"childSessionKey":       {"subagents", []string{`""`, `null`, `1`, `[]`, `"a\u0000"`, `"` + long + `"`}},
		"childSessionId":        {"subagents", []string{`1`, `"a\u0000"`, `"` + long + `"`}},
		"contextMode":           {"subagents", []string{`"forked"`, `1`, `[]`, `"Fork"`}},
		"ttlMs":                 {"subagents", []string{`-1`, `1.5`, `"1"`, `99999999999999999999`}},
		"prePromptMessageCount": {"after-turn", []string{`null`, `-1`, `2`, `1.5`, `"0"`, `99999999999999999999`}},
	}
	bodies := posts()
	for field, c := range members {
		for route := range strings.FieldsSeq(c.routes) {
			for _, v := range c.values {
				var body map[string]json.RawMessage
				if err := json.Unmarshal([]byte(bodies[route]), &body); err != nil {
					t.Fatal(err)
				}
				body[field] = json.RawMessage(v)
				raw, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				w := ask(a, http.MethodPost, known+"/"+route, string(raw))
				slug, p := problem(t, w)
				if w.Code != 422 || slug != "validation" || !strings.HasPrefix(p.Field, field) {
					t.Errorf("%s with %s = %.40s: %d %s field %q (%s)", route, field, v, w.Code, slug, p.Field, p.Detail)
				}
			}
		}
	}
	missing := map[string]string{
		"ingest": "message", "ingest-batch": "messages", "commit-turn": "advancementKey", "after-turn": "messages", "rewind": "toSeq", "bootstrap": "sessionId",
		"fork": "newSessionKey", "subagents": "childSessionKey", "subagents/c/ended": "reason",
	}
	for route, field := range missing {
		w := ask(a, http.MethodPost, known+"/"+route, `{}`)
		if slug, p := problem(t, w); slug != "validation" || p.Field != field {
			t.Errorf("%s of nothing: %s %+v", route, slug, p)
		}
	}
	if _, p := problem(t, ask(a, http.MethodPost, known+"/after-turn", `{"messages":[]}`)); p.Field != "prePromptMessageCount" {
		t.Errorf("after-turn without a count: %+v", p)
	}
}

// Two different halves of surrogate pairs would become the same text.
func TestLoneSurrogates(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	routes := map[string]string{
		"sessionId":       "bootstrap ingest ingest-batch commit-turn after-turn assemble compact maintain reset rewind undo-compaction",
		"gatewayId":       "bootstrap ingest ingest-batch commit-turn after-turn assemble compact maintain reset rewind undo-compaction",
		"nextSessionId":   "reset",
		"idempotencyKey":  "ingest",
		"idempotencyKeys": "ingest-batch",
		"advancementKey":  "commit-turn",
		"newSessionKey":   "fork",
		"childSessionKey": "subagents",
		"childSessionId":  "subagents",
		"reason":          "maintain reset",
	}
	texts := map[string]bool{
		`"\ud800"`: false, `"a\uDFFFb"`: false, `"\ud800\ud800"`: false, `"\udc00\ud800"`: false, `"\ud83d\ude00\ud83d"`: false, `"\\\ud800"`: false,
		`"\ud83d\ude00"`: true, `"\uD83D\uDE00"`: true, `"\\ud800"`: true, `"�\ufffd"`: true,
	}
	bodies := posts()
	for field, list := range routes {
		for route := range strings.FieldsSeq(list) {
			for text, good := range texts {
				for _, name := range []string{field, strings.ToUpper(field)} {
					value := text
					if field == "idempotencyKeys" {
						value = "[" + text + "]"
					}
					body := strings.TrimSuffix(bodies[route], "}")
					if body != "{" {
						body += ","
					}
					body += `"` + name + `":` + value + "}"
					w := ask(a, http.MethodPost, known+"/"+route, body)
					if good && w.Code != 200 {
						t.Errorf("%s: %s: %d %s", route, body, w.Code, w.Body)
					}
					if good {
						continue
					}
					if slug, p := problem(t, w); slug != "validation" || w.Code != 422 || p.Field != field {
						t.Errorf("%s: %s: %d %+v", route, body, w.Code, p)
					}
				}
			}
		}
	}
	// Messages are kept as they came.
	if w := ask(a, http.MethodPost, known+"/ingest", `{"message":{"role":"user","content":"\ud800"},"idempotencyKey":"\ud83d\ude00"}`); w.Code != 200 {
		t.Errorf("a message: %d %s", w.Code, w.Body)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, func(c *api.Config) {
		c.Limits = api.Limits{MessageBytes: 1000, BatchBytes: 100_000, BatchMessages: 10}
	})
	message := func(n int) string { return `{"role":"user","content":"` + strings.Repeat("x", n) + `"}` }
	many := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(message(1)+",", n), ",") + "]" }
	cases := []struct {
		route, body string
		status      int
		limit       int64
	}{
		{"ingest", `{"message":` + message(900) + `}`, 200, 0},
		{"ingest", `{"message":` + message(1000) + `}`, 413, 1000},
		{"ingest", `{"message":` + message(100_000) + `}`, 413, 1000 + 64<<10},
		{"ingest", strings.Repeat(" ", 100_000), 413, 1000 + 64<<10},
		{"ingest-batch", `{"messages":[` + message(1000) + `]}`, 413, 1000},
		{"ingest-batch", `{"messages":` + many(10) + `}`, 200, 0},
		{"ingest-batch", `{"messages":` + many(11) + `}`, 413, 10},
		{"commit-turn", `{"advancementKey":"t","messages":` + many(11) + `}`, 413, 10},
		{"after-turn", `{"prePromptMessageCount":0,"messages":` + many(11) + `}`, 413, 10},
		{"bootstrap", `{"sessionId":"s","messages":` + many(11) + `}`, 413, 10},
		{"assemble", `{"messages":` + many(11) + `}`, 413, 10},
		{"assemble", `{"availableTools":[` + strings.Repeat(`"",`, 10) + `""]}`, 413, 10},
		{"ingest-batch", `{"messages":[{"a":"` + strings.Repeat("x", 200_000) + `"}]}`, 413, 100_000 + 64<<10},
	}
	for _, tc := range cases {
		w := ask(a, http.MethodPost, known+"/"+tc.route, tc.body)
		if tc.status == 200 {
			if w.Code != 200 {
				t.Errorf("%s %.60s: %d %s", tc.route, tc.body, w.Code, w.Body)
			}
			continue
		}
		_, p := problem(t, w)
		if w.Code != tc.status || p.Limit != tc.limit {
			t.Errorf("%s %.60s: %d %+v", tc.route, tc.body, w.Code, p)
		}
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	if w := ask(a, http.MethodPost, known+"/ingest", `{"message":`+nested(512)+`}`); w.Code != 200 {
		t.Errorf("at the limit: %d %s", w.Code, w.Body)
	}
	for _, n := range []int{513, 1000, 10_000, 100_000} {
		for route, body := range map[string]string{
			"ingest":       `{"message":` + nested(n) + `}`,
			"ingest-batch": `{"messages":[{},` + nested(n) + `]}`,
			"commit-turn":  `{"advancementKey":"t","messages":[` + nested(n) + `]}`,
		} {
			w := ask(a, http.MethodPost, known+"/"+route, body)
			if slug, _ := problem(t, w); w.Code != 422 || slug != "validation" {
				t.Errorf("%s, %d deep: %d %s", route, n, w.Code, slug)
			}
		}
	}
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGzip(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	w := ask(a, http.MethodPost, known+"/ingest", zipped(t, posts()["ingest"]), "Content-Encoding", "gzip")
	if w.Code != 200 {
		t.Errorf("gzip: %d %s", w.Code, w.Body)
	}
	bomb := zipped(t, strings.Repeat(" ", 100<<20))
	w = ask(a, http.MethodPost, known+"/ingest", bomb, "Content-Encoding", "gzip")
	if slug, p := problem(t, w); slug != "too-large" || p.Limit == 0 {
		t.Errorf("bomb of %d bytes: %s %+v", len(bomb), slug, p)
	}
	cut := zipped(t, posts()["ingest"])
	w = ask(a, http.MethodPost, known+"/ingest", cut[:len(cut)-6], "Content-Encoding", "gzip")
	if slug, _ := problem(t, w); slug != "malformed" {
		t.Errorf("cut gzip: %s", slug)
	}
}

func TestIdempotencyKeyHeader(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	for _, tc := range []struct {
		header, body, want string
		status             int
	}{
		{"k1", `{"message":{}}`, "k1", 200},
		{"k1", `{"message":{},"idempotencyKey":"k1"}`, "k1", 200},
		{"", `{"message":{},"idempotencyKey":"k2"}`, "k2", 200},
		{"k1", `{"message":{},"idempotencyKey":"k2"}`, "", 422},
		{strings.Repeat("k", 513), `{"message":{}}`, "", 422},
		{"\xff", `{"message":{}}`, "", 422},
	} {
		w := ask(a, http.MethodPost, known+"/ingest", tc.body, "Idempotency-Key", tc.header)
		if w.Code != tc.status {
			t.Errorf("header %.20q, body %s: %d %s", tc.header, tc.body, w.Code, w.Body)
		} else if got := fmt.Sprint(ingestKey(f)); tc.status == 200 && got != tc.want {
			t.Errorf("header %q, body %s: key %q", tc.header, tc.body, got)
		}
	}
}
