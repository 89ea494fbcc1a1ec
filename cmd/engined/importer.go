package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

const (
	// batchBytes keeps a request far below what a node takes; heldBytes is what
	// all sessions of a file together may hold back.
	batchBytes = 4 << 20
	heldBytes  = 16 << 20
	// importTries is how often a batch is sent to a node that is away or busy.
	importTries = 6
)

// ingester is the call of the wire that an import makes.
type ingester interface {
	IngestBatch(ctx context.Context, key string, messages []json.RawMessage, keys []string) (contextengine.IngestBatchResult, error)
}

// importer brings one file to a node.
type importer struct {
	node     ingester
	key      string
	batch    int
	progress *progress

	report  *fileReport
	pending map[string]*batch
	held    int
	// pause waits between tries; time.After in production.
	pause func(time.Duration) <-chan time.Time
}

// batch is what waits for one session, in order.
type batch struct {
	messages []json.RawMessage
	keys     []string
	lines    []int
	bytes    int
}

// file imports a file and says what became of it.
func (im *importer) file(ctx context.Context, path string) *fileReport {
	im.report = newFileReport(path)
	im.pending = map[string]*batch{}
	if im.pause == nil {
		im.pause = time.After
	}
	im.report.err = im.read(ctx, path)
	im.progress.end(im.report)
	return im.report
}

func (im *importer) read(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(0)
	if fi, err := f.Stat(); err == nil {
		size = fi.Size()
	}
	im.progress.begin(path, size)
	read, err := transcript.Read(ctx, path, im.progress.count(f), func(e transcript.Entry) error { return im.entry(ctx, e) })
	im.report.add(read)
	if err != nil {
		return err
	}
	return im.flushAll(ctx)
}

func (im *importer) entry(ctx context.Context, e transcript.Entry) error {
	if e.Message == nil {
		return nil // the report counts it by its kind
	}
	session := im.key
	if e.Session != "" {
		session += ":" + e.Session
	}
	b := im.pending[session]
	if b == nil {
		b = &batch{}
		im.pending[session] = b
	}
	if len(b.messages) > 0 && b.bytes+len(e.Message) > batchBytes {
		if err := im.flush(ctx, session, b); err != nil {
			return err
		}
	}
	b.messages = append(b.messages, e.Message)
	b.keys = append(b.keys, entryKey(e))
	b.lines = append(b.lines, e.Line)
	b.bytes += len(e.Message)
	im.held += len(e.Message)
	switch {
	case len(b.messages) >= im.batch:
		return im.flush(ctx, session, b)
	case im.held > heldBytes:
		return im.flushAll(ctx)
	}
	return nil
}

// entryKey names an entry for ever: by its id and its content, for files exist
// in which one id stands before two messages.
func entryKey(e transcript.Entry) string {
	sum := message.Hash(e.Message, false)
	id := e.ID
	if len(id) > 400 {
		long := message.Hash([]byte(id), false)
		id = hex.EncodeToString(long[:])
	}
	return id + "/" + hex.EncodeToString(sum[:8])
}

func (im *importer) flushAll(ctx context.Context) error {
	sessions := make([]string, 0, len(im.pending))
	for s := range im.pending {
		sessions = append(sessions, s)
	}
	slices.Sort(sessions)
	for _, s := range sessions {
		if err := im.flush(ctx, s, im.pending[s]); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what waits for a session. A batch that the node refuses for what
// is in it is sent message by message, to find the one.
func (im *importer) flush(ctx context.Context, session string, b *batch) error {
	if len(b.messages) == 0 {
		return nil
	}
	defer func() { im.held -= b.bytes; *b = batch{} }()
	res, err := im.send(ctx, session, b.messages, b.keys)
	if err == nil {
		im.took(session, len(b.messages), res)
		return nil
	}
	if !refused(err) {
		return err
	}
	for i := range b.messages {
		res, err := im.send(ctx, session, b.messages[i:i+1], b.keys[i:i+1])
		switch {
		case err == nil:
			im.took(session, 1, res)
		case refused(err):
			im.report.refuse(b.lines[i], err.Error())
		default:
			return err
		}
	}
	return nil
}

func (im *importer) took(session string, n int, res contextengine.IngestBatchResult) {
	im.report.took(session, n, res)
	im.progress.messages(im.report.New + im.report.AlreadyThere)
}

// send tries until the node is there; the keys make a repetition harmless.
func (im *importer) send(ctx context.Context, session string, messages []json.RawMessage, keys []string) (contextengine.IngestBatchResult, error) {
	for try := 1; ; try++ {
		res, err := im.node.IngestBatch(ctx, session, messages, keys)
		wait, again := mayRetry(err, try)
		if !again || ctx.Err() != nil {
			return res, err
		}
		im.progress.note(fmt.Sprintf("%v; trying again", err))
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-im.pause(wait):
		}
	}
}

// mayRetry tells whether, and after how long, a failed call is worth another.
func mayRetry(err error, try int) (wait time.Duration, again bool) {
	wait = time.Second << min(try-1, 4)
	var p *client.Problem
	var away *client.UnreachableError
	switch {
	case try >= importTries:
		return 0, false
	case errors.As(err, &p) && (p.Status == 429 || p.Status == 503):
		return max(wait, p.Wait()), true
	case errors.As(err, &away):
		return wait, true
	}
	return 0, false
}

// refused tells that a node will never take what was sent.
func refused(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && (p.Status == 400 || p.Status == 413 || p.Status == 422 ||
		p.Status == 409 && p.Slug() == "idempotency-conflict")
}

// counter counts what is read from a file.
type counter struct {
	r   io.Reader
	add func(int)
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.add(n)
	return n, err
}
