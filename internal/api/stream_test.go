package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// follower reads a stream of server-sent events.
type follower struct {
	t      *testing.T
	lines  *bufio.Reader
	cancel func()
}

type frame struct {
	id, data string
	comment  bool
	retry    string
}

func follow(t *testing.T, s *httptest.Server, path string, headers ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%s: %d %s", path, res.StatusCode, ct)
	}
	f := &follower{t: t, lines: bufio.NewReader(res.Body), cancel: func() { cancel(); res.Body.Close() }}
	if first := f.frame(); first.retry == "" {
		t.Fatalf("the stream begins with %+v", first)
	}
	return f
}

// frame reads up to the next empty line, as a browser does.
func (f *follower) frame() (fr frame) {
	f.t.Helper()
	var data []string
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.t.Fatalf("stream: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			fr.data = strings.Join(data, "\n")
			return fr
		case name == "":
			fr.comment = true
		case name == "id":
			fr.id = value
		case name == "data":
			data = append(data, value)
		case name == "retry":
			fr.retry = value
		default:
			f.t.Fatalf("line %q", line)
		}
	}
}

func (f *follower) row() (string, api.EventRow) {
	f.t.Helper()
	for {
		fr := f.frame()
		if fr.comment {
			continue
		}
		var row api.EventRow
		if err := json.Unmarshal([]byte(fr.data), &row); err != nil {
			f.t.Fatalf("frame %+v: %v", fr, err)
		}
		return fr.id, row
	}
}

func serve(t *testing.T, f *fake, change func(*api.Config)) (*httptest.Server, *api.API) {
	a := newAPI(t, f, change)
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return s, a
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	f := newFake()
	// Only the waker can bring what comes later: the poll is too far off.
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Hour })
	const before = 150
	for i := range before {
		f.put("default", "s", events.MessageAppended, fmt.Appendf(nil, `{"n":%d}`, i+1))
	}
	stream := follow(t, s, "/v1/sessions/s/events/stream")
	defer stream.cancel()
	expect := func(st *follower, n int64) {
		t.Helper()
		if id, row := st.row(); id != fmt.Sprint(n) || row.Seq != n || row.SessionKey != "s" {
			t.Fatalf("expected %d, got %s %+v", n, id, row)
		}
	}
	for i := range before {
		expect(stream, int64(i+1))
	}
	for i := range 5 {
		f.put("default", "s", events.MessageAppended, []byte(`{}`))
		expect(stream, int64(before+i+1))
	}
	again := follow(t, s, "/v1/sessions/s/events/stream?after=3", "Last-Event-ID", "153")
	defer again.cancel()
	expect(again, 154)
	from := follow(t, s, "/v1/sessions/s/events/stream?after=152")
	defer from.cancel()
	expect(from, 153)
}

// A read that ended by its bytes is followed by the next one, not by a poll.
func TestStreamOfLargeEvents(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Hour })
	body := []byte(`{"x":"` + strings.Repeat("x", 2<<20+1) + `"}`)
	for range 3 {
		f.put("default", "s", events.MessageAppended, body)
	}
	for _, path := range []string{"/v1/sessions/s/events/stream", "/v1/feed/stream"} {
		stream := follow(t, s, path)
		defer stream.cancel()
		for i := range 3 {
			if fr := stream.frame(); !strings.HasPrefix(fr.data, fmt.Sprintf(`{"seq":%d,`, i+1)) {
				t.Fatalf("%s: row %d is %.40s", path, i+1, fr.data)
			}
		}
	}
}

func TestStreamRowsAreThePagesRows(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, a := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Hour })
	for _, m := range verbatim() {
		f.put("default", "s", events.MessageAppended, []byte(m))
	}
	page := ask(a, http.MethodGet, "/v1/sessions/s/events", "").Body.String()
	session := follow(t, s, "/v1/sessions/s/events/stream")
	defer session.cancel()
	feed := follow(t, s, "/v1/feed/stream")
	defer feed.cancel()
	for range verbatim() {
		one, other := session.frame(), feed.frame()
		if !strings.Contains(page, one.data) || one.data != other.data || one.id == other.id {
			t.Errorf("rows differ: %.200s | %.200s", one.data, other.data)
		}
	}
	// Carriage returns can't travel; the JSON stays the same.
	f.put("default", "s", events.MessageAppended, []byte("{\r\n\"a\":\r1,\n\"b\":2\n\r}"))
	if _, row := session.row(); string(row.Message) != "{\n\"a\":\n1,\n\"b\":2\n\n}" {
		t.Errorf("message %q", row.Message)
	}
}

func TestFeedStreamResumes(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Hour })
	for i := range 10 {
		f.put("default", fmt.Sprintf("k%d", i), events.MessageAppended, []byte(`{}`))
	}
	stream := follow(t, s, "/v1/feed/stream")
	defer stream.cancel()
	var cursor string
	for i := range 5 {
		var row api.EventRow
		if cursor, row = stream.row(); row.SessionKey != fmt.Sprintf("k%d", i) {
			t.Fatalf("event %d: %+v", i, row)
		}
	}
	for _, again := range []*follower{
		follow(t, s, "/v1/feed/stream", "Last-Event-ID", cursor), follow(t, s, "/v1/feed/stream?after="+cursor),
	} {
		defer again.cancel()
		if _, row := again.row(); row.SessionKey != "k5" {
			t.Errorf("resumed with %+v", row)
		}
	}
	page := ask(s.Config.Handler, http.MethodGet, "/v1/feed?limit=1&after="+cursor, "")
	if !strings.Contains(page.Body.String(), `"sessionKey":"k5"`) {
		t.Errorf("a stream's id is no page's cursor: %s", page.Body)
	}
}

func TestStreamHeartbeatsAndPolls(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat, c.Waker = time.Millisecond, 5*time.Millisecond, nil })
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	stream := follow(t, s, "/v1/sessions/s/events/stream")
	defer stream.cancel()
	stream.row()
	for !stream.frame().comment { // wait for a heartbeat
	}
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	if id, _ := stream.row(); id != "2" {
		t.Errorf("polled %s", id)
	}
}

func TestStreamOutlivesTheStore(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Millisecond, 2*time.Millisecond })
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	stream := follow(t, s, "/v1/sessions/s/events/stream")
	defer stream.cancel()
	stream.row()
	set := func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.readErr = err
	}
	set(fmt.Errorf("events: %w", store.ErrUnavailable))
	for range 3 {
		if fr := stream.frame(); !fr.comment {
			t.Fatalf("frame %+v", fr)
		}
	}
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	set(nil)
	if id, _ := stream.row(); id != "2" {
		t.Errorf("went on with %s", id)
	}
}

func TestStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, _ := serve(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Millisecond })
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	stream := follow(t, s, "/v1/sessions/s/events/stream")
	defer stream.cancel()
	stream.row()
	f.mu.Lock()
	f.sessions = map[string][]events.Event{}
	f.mu.Unlock()
	toEnd(t, stream)
}

// toEnd reads to the end of a stream that says goodbye.
func toEnd(t *testing.T, stream *follower) {
	t.Helper()
	rest := new(strings.Builder)
	if _, err := stream.lines.WriteTo(rest); err != nil || !strings.Contains(rest.String(), "retry: ") {
		t.Errorf("ends with %v after %q", err, rest)
	}
}

func TestDrainEndsStreams(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, func(c *api.Config) { c.Poll, c.Heartbeat = time.Hour, time.Hour })
	s := httptest.NewUnstartedServer(a)
	s.Config = a.Server()
	s.Start()
	defer s.Close()
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	stream, feed := follow(t, s, "/v1/sessions/s/events/stream"), follow(t, s, "/v1/feed/stream")
	defer stream.cancel()
	defer feed.cancel()
	stream.row()
	feed.row()
	done := make(chan error, 1)
	go func() { done <- s.Config.Shutdown(t.Context()) }()
	toEnd(t, stream)
	toEnd(t, feed)
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	f := newFake()
	s, a := serve(t, f, func(c *api.Config) {
		c.Poll, c.Heartbeat, c.Limits.Streams = time.Hour, time.Hour, 2
		c.Auth = func(r *http.Request) (access.Principal, error) {
			return access.Principal{Tenant: r.Header.Get("Tenant"), Scopes: access.Analyst}, nil
		}
	})
	one := follow(t, s, "/v1/feed/stream", "Tenant", "a")
	two := follow(t, s, "/v1/feed/stream", "Tenant", "a")
	defer two.cancel()
	w := ask(a, http.MethodGet, "/v1/feed/stream", "", "Tenant", "a")
	if slug, p := problem(t, w); w.Code != 429 || slug != "rate-limited" || p.Limit != 2 || w.Header().Get("Retry-After") == "" {
		t.Errorf("third stream: %d %+v", w.Code, p)
	}
	other := follow(t, s, "/v1/feed/stream", "Tenant", "b")
	other.cancel()
	one.cancel()
	// The place is free once the server has seen the client leave.
	for ask(a, http.MethodHead, "/v1/feed/stream", "", "Tenant", "a").Code != 200 { // wait
	}
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	f := newFake()
	var revoked atomic.Bool
	s, _ := serve(t, f, func(c *api.Config) {
		c.Poll, c.Heartbeat = time.Hour, 10*time.Millisecond
		c.Auth = func(*http.Request) (access.Principal, error) {
			if revoked.Load() {
				return access.Principal{}, access.ErrRevoked
			}
			return access.Principal{Tenant: "a", Scopes: access.Analyst}, nil
		}
	})
	res, err := http.Get(s.URL + "/v1/feed/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	revoked.Store(true)
	if said := read(t, res); !strings.Contains(said, "ends this stream") {
		t.Errorf("the stream says %q", said)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
