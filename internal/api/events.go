package api

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
)

// EventPage is a page of a session's log.
type EventPage struct {
	Events []EventRow `json:"events"`
	// Next is the next page's after; null at the end of the log.
	Next *int64 `json:"next"`
}

func eventOperations() []*operation {
	page := get(sessionPath+"/events", "listEvents", tagSessions, "Read a session's log", serveEvents)
	page.description = "Every seq is listed, `message` as it was stored. A page ends early when its messages are large; follow `next`."
	page.keyed, page.answer, page.refusals = true, of[EventPage](), []kind{kindUnknown}
	page.query = []queryParam{
		{name: "after", in: "query", integer: true, doc: "The seq to start behind."},
		limitParam(),
		{name: "type", in: "query", doc: "Only these types of event, separated by commas; messages can't be asked for this way, most events are."},
	}

	live := get(sessionPath+"/events/stream", "streamEvents", tagSessions, "Follow a session's log", serveEventStream)
	live.description = "Server-sent events: `id` is the seq, `data` the page's row. Without `Last-Event-ID` it starts at the beginning. " +
		"A carriage return between a message's JSON tokens arrives as a line feed, as server-sent events can't carry it."
	live.keyed, live.answer, live.refusals = true, of[EventRow](), []kind{kindUnknown, kindRate}
	live.kind, live.media = stream, "text/event-stream"
	live.query = []queryParam{
		{name: "after", in: "query", integer: true, doc: "The seq to start behind, where there is no Last-Event-ID."},
		{name: "Last-Event-ID", in: "header", integer: true, doc: "The seq of the last event that arrived."},
	}
	return []*operation{page, live}
}

// logReader reads one session's events as rows.
type logReader struct {
	log    Log
	tenant string
	sid    uuid.UUID
	key    []byte
	after  int64
	// types, where there are any, are all that is read, up to head.
	types []events.Type
	head  int64
}

// read answers with the next rows and moves on behind them.
func (l *logReader) read(ctx context.Context, most bound) (chunk, error) {
	found, err := l.find(ctx, most)
	if err != nil {
		return chunk{}, err
	}
	rows, size := make([]row, len(found)), int64(0)
	for i := range found {
		e := &found[i]
		rows[i] = row{id: strconv.FormatInt(e.Seq, 10), data: appendRow(make([]byte, 0, len(e.Body)+256), l.key, e)}
		l.after, size = e.Seq, size+int64(len(e.Body))
	}
	return chunk{rows: rows, more: most.reached(len(rows), size)}, nil
}

// find reads events of any type, or those of the wanted ones in the log's order.
func (l *logReader) find(ctx context.Context, most bound) ([]events.Event, error) {
	if len(l.types) == 0 {
		return l.log.EventsWithin(ctx, l.tenant, l.sid, l.after, most.rows, most.bytes)
	}
	var found []events.Event
	for _, t := range l.types {
		some, err := l.log.EventsOfType(ctx, l.tenant, l.sid, t, l.after, l.head, most.rows)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b events.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return found[:min(len(found), most.rows)], nil
}

// eventTypes reads the parameter of that name; none for "".
func eventTypes(text string) ([]events.Type, error) {
	if text == "" {
		return nil, nil
	}
	var types []events.Type
	for name := range strings.SplitSeq(text, ",") {
		t, ok := events.TypeNamed(strings.TrimSpace(name))
		if !ok {
			return nil, &contextengine.InvalidError{Field: "type", Reason: "names no type of event: " + quote(name)}
		}
		if t == events.MessageAppended {
			return nil, &contextengine.InvalidError{Field: "type", Reason: "messages can't be asked for by type; read the log without it"}
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types, nil
}

func serveEvents(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	limit, err := c.limit(q)
	if err != nil {
		return err
	}
	after, err := seq("after", q.Get("after"), 0)
	if err != nil {
		return err
	}
	s, err := c.api.cfg.Log.Session(c.ctx, c.tenant, c.session)
	if err != nil {
		return err
	}
	from := logReader{log: c.api.cfg.Log, tenant: c.tenant, sid: s.SID, key: jsonText(s.Key), after: after}
	if from.types, err = eventTypes(q.Get("type")); err != nil {
		return err
	}
	from.head = s.Head
	buf := answers.Get().(*bytes.Buffer)
	defer recycle(&answers, buf)
	buf.WriteString(`{"events":[`)
	n, err := writeRows(c.ctx, buf, from.read, limit)
	if err != nil {
		return err
	}
	buf.WriteString(`],"next":`)
	if n > 0 && from.after < s.Head && (len(from.types) == 0 || n == limit || buf.Len() >= pageBytes) {
		buf.WriteString(strconv.FormatInt(from.after, 10))
	} else {
		buf.WriteString("null")
	}
	buf.WriteByte('}')
	return c.send(buf.Bytes())
}

// row is an event on its way out: its place and its JSON.
type row struct {
	id   string
	data []byte
}

// bound is how much one read may bring: the row that reaches bytes is its last.
type bound struct {
	rows  int
	bytes int64
}

// reached tells whether a read ended at its bound, and not at the end of the log.
func (b bound) reached(rows int, bytes int64) bool {
	return rows >= b.rows || rows > 0 && bytes >= b.bytes
}

// chunk is what one read brought; more, that another one may bring more.
type chunk struct {
	rows []row
	more bool
}

type reader func(context.Context, bound) (chunk, error)

// writeRows writes up to limit rows, fewer when they are large: a page passes
// pageBytes by one message at the most.
func writeRows(ctx context.Context, buf *bytes.Buffer, read reader, limit int) (n int, err error) {
	for n < limit && buf.Len() < pageBytes {
		found, err := read(ctx, bound{rows: min(limit-n, chunkRows), bytes: int64(min(pageBytes-buf.Len(), chunkBytes))})
		if err != nil {
			return n, err
		}
		for i := range found.rows {
			if n > 0 {
				buf.WriteByte(',')
			}
			buf.Write(found.rows[i].data)
			n++
		}
		if !found.more {
			break
		}
	}
	return n, nil
}
