package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/contextengine/remote/remotetest"
)

// TestAbortPropagates to the caller at once, with its cause, and to the engine.
func TestAbortPropagates(t *testing.T) {
	t.Parallel()
	why := errors.New("the user pressed stop")
	inside, left := make(chan struct{}), make(chan struct{})
	r := &recorder{during: func(ctx context.Context) {
		close(inside)
		<-ctx.Done()
		close(left)
	}}
	c := serve(t, r, remote.HandlerOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-inside
		cancel(why)
	}()
	_, err := c.Assemble(ctx, contextengine.AssembleParams{Session: on("k")})
	var timeout *remote.TimeoutError
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || errors.As(err, &timeout) {
		t.Errorf("%v", err)
	}
	<-left
	if _, err := c.Assemble(ctx, contextengine.AssembleParams{Session: on("k")}); !errors.Is(err, why) {
		t.Errorf("aborted before: %v", err)
	}
}

func TestTheCallersDeadlineIsNotTheEnginesFault(t *testing.T) {
	t.Parallel()
	_, c := hostile(t, remotetest.Hang, func(cfg *remote.Config) { cfg.Timeout = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Assemble(ctx, contextengine.AssembleParams{Session: on("k")})
	var timeout *remote.TimeoutError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) {
		t.Errorf("%v", err)
	}
}

// TestRetriesOnlyWhatIsSafe: a connection that breaks after the call was sent
// is no reason to repeat a call that is not harmless twice.
func TestRetriesOnlyWhatIsSafe(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]int64{
		"ingest": 1, "after-turn": 1, "compact": 1, "assemble": 3, "ingest-batch": 3, "commit-turn": 3, "bootstrap": 3, "maintain": 3,
	} {
		server, c := hostile(t, remotetest.Crash, func(cfg *remote.Config) { cfg.Timeout, cfg.CompactTimeout = margin, margin })
		err := calls(t.Context(), c)[op]()
		var lost *remote.UnreachableError
		if !errors.As(err, &lost) || !lost.Sent || server.Calls() != want {
			t.Errorf("%s: %d calls, want %d: %v", op, server.Calls(), want, err)
		}
	}
}

func TestAnEngineThatIsAwayWasNotSentAnything(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = remote.Connect(t.Context(), remote.Config{URL: url})
	var lost *remote.UnreachableError
	if !errors.As(err, &lost) || lost.Sent {
		t.Errorf("%v", err)
	}
}

func TestTokenAndHeadersAreSentAndNeverRedirected(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("%s: %v", r.URL, r.Header)
		}
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusPermanentRedirect)
	}))
	defer server.Close()
	info := contextengine.Info{ID: "x", Name: "x"}
	c, err := remote.New(remote.Config{URL: server.URL + "/base/", Token: "secret", Header: http.Header{"x-team": {"blue"}}, Info: &info})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k")})
	var status *remote.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusPermanentRedirect || elsewhere.Load() != 0 {
		t.Errorf("%v, %d calls elsewhere", err, elsewhere.Load())
	}
}

func TestWhatCannotArriveIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	server, c := hostile(t, remotetest.Crash)
	ok := json.RawMessage(`{}`)
	for name, p := range map[string]contextengine.IngestParams{
		"no key": {Message: ok}, "long key": {Session: on(strings.Repeat("k", 513)), Message: ok}, "NUL": {Session: on("a\x00"), Message: ok},
		"bad UTF-8 key": {Session: on("\xff"), Message: ok}, "bad UTF-8 idempotency key": {Session: on("k"), Message: ok, IdempotencyKey: "\xff"},
		"no message": {Session: on("k")}, "no object": {Session: on("k"), Message: json.RawMessage(`"a"`)},
		"no JSON": {Session: on("k"), Message: json.RawMessage(`{"a":1}, "x":{}`)}, "bad UTF-8": {Session: on("k"), Message: json.RawMessage("{\"a\":\"\xff\"}")},
	} {
		_, err := c.Ingest(t.Context(), p)
		var invalid *contextengine.InvalidError
		if !errors.As(err, &invalid) || server.Calls() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	info := contextengine.Info{ID: "x", Name: "x"}
	for _, url := range []string{"", "127.0.0.1:1", "ftp://x", "http://", "http://x?y=1", "http://x#y", "http://\x7f"} {
		if _, err := remote.New(remote.Config{URL: url, Info: &info}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
	if _, err := remote.New(remote.Config{URL: "http://x"}); err == nil {
		t.Error("New without Info")
	}
	for body, ok := range map[string]bool{
		`{"id":"a","name":"b"}`: true, `{"id":"a","name":"b","new":[1]}`: true, `{"id":" ","name":"b"}`: false, `{"id":"a"}`: false, `[]`: false,
		`{"id":"a","name":"b","calls":7}`: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		c, err := remote.Connect(t.Context(), remote.Config{URL: server.URL})
		if (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
		if err == nil {
			c.Close()
		}
		server.Close()
	}
}
