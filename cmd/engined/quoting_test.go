package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/testdb"
)

// quoter is a provider of models that repeats the conversation wherever a
// provider can say something.
func quoter(t *testing.T, word string, say func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), word) {
			t.Errorf("a model was asked without the word that is looked for")
		}
		say(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestErrorsQuoteNoConversation has models fail in every way that lets them repeat
// what they were sent, and looks for it in the logs and in every table that is
// not the log itself, nor a part of it in another form.
func TestErrorsQuoteNoConversation(t *testing.T) {
	t.Parallel()
	const word = "zebramarker"
	problem := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"you said %[1]s","type":"about %[1]s","code":"it is %[1]s"}}`, word)
		}
	}
	garbage := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s %s\r\n\r\n", word, word)
		_ = conn.Close()
	}
	stream := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {%s\n\n", word)
	}
	// A text that lacks the identifiers and the newest request, which hold the word.
	poor := llmtest.OpenAI(t, func(_ int, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: strings.ReplaceAll(llmtest.Summary(r.User, "x"), word, "")}
	})
	urls := []string{
		quoter(t, word, problem(500)), quoter(t, word, problem(400)), quoter(t, word, problem(401)), quoter(t, word, garbage), quoter(t, word, stream), poor.URL,
	}
	var list []string
	for i, u := range urls {
		list = append(list, fmt.Sprintf("m%d=openai:x@%s", i, u))
	}
	db := testdb.Empty(t)
	n := serveIn(t, noEnv, "serve", "--worker", "--listen", "127.0.0.1:0", "--insecure", "--log-level", "debug", "--log-format", "json",
		"--database-url", db, "--nats-url", bustest.StartTCP(t).URL(), "--summarizers", strings.Join(list, ","), "--last-resort-after", "0", "--redact=false")
	cl := clientOf(t, n.url, "")
	var said []json.RawMessage
	for i := range 20 {
		said = append(said,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"Look at /srv/%s/%s%d.go and say what %s is. %s"}`, word, word, i, word, strings.Repeat("It matters. ", 40))),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I read /srv/%s/%s%d.go. %s"}]}`, word, word, i, strings.Repeat("It is fine. ", 40))))
	}
	body, err := json.Marshal(map[string]any{"messages": said, "prePromptMessageCount": 0, "tokenBudget": 6000, "sessionId": "s"})
	if err != nil {
		t.Fatal(err)
	}
	call := func(path string, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+"/v1/sessions/s/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", path, res.StatusCode, answer)
		}
		return string(answer)
	}
	call("after-turn", string(body))
	call("compact", `{"tokenBudget":3000,"force":true}`)
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var tried bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM compaction_debt WHERE failures > 0)
			AND EXISTS (SELECT FROM summarizer_gates WHERE last_error IS NOT NULL)`).Scan(&tried)
		if err != nil {
			t.Fatal(err)
		}
		if tried {
			break
		}
		<-tick.C
	}
	if list, _, err := cl.Summarizers(t.Context()); err != nil || list.Summarizers[0].LastError != "down (500)" || list.Summarizers[2].LastError != "access (401)" {
		t.Errorf("what is told of the models: %+v, %v", list, err)
	}
	n.end(t)
	logs := n.out.String() + n.err.String()
	if !strings.Contains(logs, "compaction failed") || !strings.Contains(logs, "letter for letter") {
		t.Fatalf("the logs tell too little for this test:\n%s", logs)
	}
	if at := strings.Index(logs, word); at >= 0 {
		t.Errorf("logged: …%s…", logs[max(0, at-300):min(len(logs), at+100)])
	}
	for table, row := range dump(t, conn) {
		if strings.Contains(row, word) || strings.Contains(row, hex.EncodeToString([]byte(word))) {
			t.Errorf("%s: %.600s", table, row)
		}
	}
}

// dump is the rows of each table that may hold nothing of what was said.
func dump(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	// The log, its bodies and what is made of it for reading.
	content := []string{"events", "bodies", "drafts", "search_parts", "summarization_jobs"}
	rows, err := conn.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 15 {
		t.Fatal(tables, err)
	}
	out := map[string]string{}
	for _, table := range tables {
		if slices.Contains(content, table) {
			continue
		}
		var all *string
		if err := conn.QueryRow(t.Context(), `SELECT string_agg(x::text, E'\n') FROM `+pgx.Identifier{table}.Sanitize()+` x`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		if all != nil {
			out[table] = *all
		}
	}
	for _, table := range []string{"compaction_debt", "summarizer_gates", "sessions"} {
		if out[table] == "" {
			t.Errorf("%s is empty: the test has not come far enough", table)
		}
	}
	return out
}
