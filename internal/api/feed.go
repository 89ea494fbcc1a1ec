package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// FeedPage is a page of a tenant's events.
type FeedPage struct {
	Events []EventRow `json:"events"`
	// Cursor is the next page's after, also on an empty page.
	Cursor string `json:"cursor"`
}

func feedOperations() []*operation {
	after := queryParam{name: "after", in: "query", doc: "A cursor from an earlier answer; absent, the beginning."}
	page := get("/v1/feed", "listFeed", tagFeed, "Read the tenant's events", serveFeed)
	page.description = "In an order that never passes an event by; within a session always in seq order. The cursor is opaque. " +
		"After the database was restored elsewhere older cursors are 410: start anew without one."
	page.answer, page.query = of[FeedPage](), []queryParam{
		after, {name: "latest", in: "query", integer: true, least: 1, doc: "Begin with the newest so many events, instead of `after`; `cursor` goes on behind them."}, limitParam(),
	}

	live := get("/v1/feed/stream", "streamFeed", tagFeed, "Follow the tenant's events", serveFeedStream)
	live.description = "Server-sent events: `id` is the cursor, `data` the page's row."
	live.answer, live.kind, live.media, live.refusals = of[EventRow](), stream, "text/event-stream", []kind{kindRate}
	live.query = []queryParam{after, {name: "Last-Event-ID", in: "header", doc: "The cursor of the last event that arrived."}}
	return []*operation{page, live}
}

// A cursor's first byte tells its layout: places of the first era name no era.
const (
	cursorFirst = 1
	cursorEra   = 2
)

func encodeCursor(c store.Cursor) string {
	b := append(make([]byte, 0, 32), cursorFirst)
	if c.Era > 1 {
		b[0] = cursorEra
		b = binary.AppendUvarint(b, uint64(c.Era))
	}
	b = binary.AppendUvarint(b, c.XID)
	b = binary.AppendUvarint(b, uint64(c.Position))
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor takes nothing but what encodeCursor wrote; empty is the beginning.
func decodeCursor(field, s string) (store.Cursor, error) {
	if s == "" {
		return store.Cursor{}, nil
	}
	bad := &contextengine.InvalidError{Field: field, Reason: "is no cursor of this feed"}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) == 0 || b[0] != cursorFirst && b[0] != cursorEra {
		return store.Cursor{}, bad
	}
	era, rest := uint64(1), b[1:]
	fields := []*uint64{new(uint64), new(uint64)}
	if b[0] == cursorEra {
		fields = append([]*uint64{&era}, fields...)
	}
	for _, f := range fields {
		var n int
		if *f, n = binary.Uvarint(rest); n <= 0 {
			return store.Cursor{}, bad
		}
		rest = rest[n:]
	}
	place := fields[len(fields)-2:]
	if len(rest) > 0 || int64(*place[1]) < 0 || int64(era) < 1 {
		return store.Cursor{}, bad
	}
	c := store.Cursor{Era: int64(era), XID: *place[0], Position: int64(*place[1])}
	if encodeCursor(c) != s {
		return store.Cursor{}, bad
	}
	return c, nil
}

// feedReader reads a tenant's events as rows.
type feedReader struct {
	log    Log
	tenant string
	after  store.Cursor
}

func (f *feedReader) read(ctx context.Context, most bound) (chunk, error) {
	found, err := f.log.FeedWithin(ctx, f.tenant, f.after, most.rows, most.bytes)
	if err != nil {
		return chunk{}, err
	}
	rows, size := make([]row, len(found)), int64(0)
	for i := range found {
		e := &found[i]
		rows[i] = row{id: encodeCursor(e.Cursor), data: appendRow(make([]byte, 0, len(e.Body)+256), jsonText(e.SessionKey), &e.Event)}
		f.after, size = e.Cursor, size+int64(len(e.Body))
	}
	return chunk{rows: rows, more: most.reached(len(rows), size)}, nil
}

func serveFeed(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	limit, err := c.limit(q)
	if err != nil {
		return err
	}
	after, err := decodeCursor("after", q.Get("after"))
	if err != nil {
		return err
	}
	if q.Has("latest") {
		if limit, err = c.rows("latest", q.Get("latest")); err != nil {
			return err
		}
		if q.Has("after") {
			return &contextengine.InvalidError{Field: "latest", Reason: "begins at the end; after begins elsewhere"}
		}
		if after, err = c.api.cfg.Log.FeedBack(c.ctx, c.tenant, limit); err != nil {
			return err
		}
	}
	from := feedReader{log: c.api.cfg.Log, tenant: c.tenant, after: after}
	buf := answers.Get().(*bytes.Buffer)
	defer recycle(&answers, buf)
	buf.WriteString(`{"events":[`)
	if _, err := writeRows(c.ctx, buf, from.read, limit); err != nil {
		return err
	}
	buf.WriteString(`],"cursor":"`)
	buf.WriteString(encodeCursor(from.after))
	buf.WriteString(`"}`)
	return c.send(buf.Bytes())
}
