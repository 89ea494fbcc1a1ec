package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/test/faults/audit"
)

// seen is an event as a watcher got it.
type seen struct {
	key    string
	seq    int64
	cursor string // of the feed
	sum    uint64
}

// sumOf tells one event from another: its type, epoch and bytes.
func sumOf(kind string, epoch int64, message, data []byte) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d ", kind, epoch)
	h.Write(message)
	h.Write([]byte{0})
	h.Write(data)
	return h.Sum64()
}

// watcher follows a session's stream over every break, from where it was.
type watcher struct {
	run *run
	s   *session

	mu     sync.Mutex
	events []seen
	breaks int
}

func (r *run) watch(ctx context.Context, s *session) {
	w := &watcher{run: r, s: s}
	s.watched = w
	r.watchers.Go(func() { w.follow(ctx) })
}

func (w *watcher) follow(ctx context.Context) {
	for at := w.s.born; ctx.Err() == nil && !w.s.erasing.Load(); at++ {
		c, err := client.New(w.run.nodes[at%len(w.run.nodes)].url, "")
		if err != nil {
			w.run.troublef("%v", err)
			return
		}
		w.mu.Lock()
		after := int64(len(w.events))
		w.breaks++
		w.mu.Unlock()
		_ = c.Stream(ctx, w.s.key, after, func(e client.Event) error { // how it breaks off is the fault's business
			w.mu.Lock()
			defer w.mu.Unlock()
			if want := int64(len(w.events)) + 1; e.Seq != want {
				w.run.troublef("the stream of %s shows seq %d where %d belongs", w.s.key, e.Seq, want)
			}
			w.events = append(w.events, seen{key: w.s.key, seq: e.Seq, sum: sumOf(e.Type, e.Epoch, e.Message, e.Data)})
			return nil
		})
		c.Close()
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *watcher) so(n int) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) < n {
		return nil
	}
	return w.events[:n:n]
}

// held compares what a watcher saw with the log.
func held(who, key string, log []audit.Row, events []seen) string {
	for i, row := range log {
		if i >= len(events) {
			return fmt.Sprintf("%s of %s saw %d of %d events", who, key, len(events), len(log))
		}
		if e := events[i]; e.seq != row.Seq || e.sum != sumOf(row.Type, row.Epoch, row.Message, row.Data) {
			return fmt.Sprintf("%s of %s saw seq %d otherwise than seq %d of the log is", who, key, e.seq, row.Seq)
		}
	}
	return ""
}

// feed follows the tenant's feed, as pages or as a stream.
type feed struct {
	run    *run
	stream bool

	mu     sync.Mutex
	cursor string
	order  []seen
	by     map[string][]seen
}

func (f *feed) name() string {
	if f.stream {
		return "the feed's stream"
	}
	return "the feed"
}

func (f *feed) take(e client.Event, cursor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := seen{key: e.SessionKey, seq: e.Seq, cursor: cursor, sum: sumOf(e.Type, e.Epoch, e.Message, e.Data)}
	before := f.by[s.key]
	if want := int64(len(before)) + 1; s.seq != want {
		f.run.troublef("%s shows seq %d of %s where %d belongs", f.name(), s.seq, s.key, want)
	}
	f.by[s.key] = append(before, s)
	f.order = append(f.order, s)
	if cursor != "" {
		f.cursor = cursor
	}
}

func (f *feed) of(key string, n int) []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.by[key]) < n {
		return nil
	}
	return f.by[key][:n:n]
}

func (f *feed) follow(ctx context.Context) {
	for at := 0; ctx.Err() == nil; at++ {
		f.mu.Lock()
		cursor := f.cursor
		f.mu.Unlock()
		base := f.run.nodes[at%len(f.run.nodes)].url
		if f.stream {
			f.follows(ctx, base, cursor)
		} else if rows, next, err := f.run.page(base, cursor, 200); err == nil {
			for _, e := range rows {
				f.take(e, "")
			}
			f.mu.Lock()
			f.cursor = next
			if n := len(f.order); n > 0 && len(rows) > 0 {
				f.order[n-1].cursor = next // a place to come back to
			}
			f.mu.Unlock()
			if len(rows) == 200 {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// page reads a page of the feed.
func (r *run) page(base, after string, limit int) ([]client.Event, string, error) {
	a := r.call(http.MethodGet, base, fmt.Sprintf("/v1/feed?limit=%d&after=%s", limit, after), nil)
	if !a.ok() {
		return nil, "", fmt.Errorf("feed: %s", a)
	}
	var p struct {
		Events []client.Event
		Cursor string
	}
	err := json.Unmarshal(a.body, &p)
	return p.Events, p.Cursor, err
}

// follows reads the stream until it breaks.
func (f *feed) follows(ctx context.Context, base, cursor string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/feed/stream", nil)
	if err != nil {
		return
	}
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	res, err := f.run.streams.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	in := bufio.NewReaderSize(res.Body, 64<<10)
	id, data := "", []byte(nil)
	for res.StatusCode == http.StatusOK {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.HasPrefix(text, []byte("id: ")):
			id = strings.TrimPrefix(string(text), "id: ")
		case bytes.HasPrefix(text, []byte("data: ")):
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, text[len("data: "):]...)
		case len(text) == 0 && data != nil:
			var e client.Event
			if err := json.Unmarshal(data, &e); err != nil {
				f.run.troublef("%s cannot be read: %v", f.name(), err)
				return
			}
			f.take(e, id)
			data = nil
		}
	}
}
