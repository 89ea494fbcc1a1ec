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
	Transcript(ctx context.Context, key string, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error)
}

// importGateway is the gateway in whose name transcripts are imported.
const importGateway = "import"

// importer brings one file to a node.
type importer struct {
	node     ingester
	key      string
	batch    int
	progress *progress
	stdin    io.Reader // os.Stdin where nil

	report *fileReport
	// tree is set for a transcript that is more than a list of messages: its own
	// entries are sent then. hostSession is the id in its header.
	tree        bool
	hostSession string
	pending     map[string]*batch
	held        int
	// pause waits between tries; time.After in production.
	pause func(time.Duration) <-chan time.Time
}

// batch is what waits for one session, in order: messages under their keys, or
// records of a host's transcript, which have no keys here.
type batch struct {
	items []json.RawMessage
	keys  []string
	lines []int
	// told marks the items that are messages, messages counts them.
	told     []bool
	messages int
	bytes    int
}

// part is one item of a batch by itself.
func (b *batch) part(i int) *batch {
	one := &batch{items: b.items[i : i+1], lines: b.lines[i : i+1]}
	if b.told[i] {
		one.messages = 1
	}
	if len(b.keys) > 0 {
		one.keys = b.keys[i : i+1]
	}
	return one
}

// file imports a file and says what became of it.
func (im *importer) file(ctx context.Context, path string) *fileReport {
	im.report = newFileReport(path)
	im.pending, im.hostSession = map[string]*batch{}, importGateway
	if im.pause == nil {
		im.pause = time.After
	}
	im.report.err = im.read(ctx, path)
	im.progress.end(im.report)
	return im.report
}

func (im *importer) read(ctx context.Context, path string) error {
	f, err := im.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(0)
	if fi, err := f.Stat(); err == nil {
		size = fi.Size()
		if im.tree = true; fi.Mode().IsRegular() { // what can be read once only is sent as it is
			im.tree = branches(ctx, path, f)
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
	im.progress.begin(path, size)
	read, err := transcript.Read(ctx, path, im.progress.count(f), func(e transcript.Entry) error { return im.entry(ctx, e) })
	im.report.add(read)
	if err != nil {
		return err
	}
	return im.flushAll(ctx)
}

// stdinName stands for the standard input.
const stdinName = "-"

// open opens a file. The standard input becomes a file without a name, so that it
// is looked at as any other and stored under the same keys.
func (im *importer) open(path string) (*os.File, error) {
	if path != stdinName {
		return os.Open(path)
	}
	f, err := os.CreateTemp("", "engined-import-")
	if err != nil {
		return nil, err
	}
	in := im.stdin
	if in == nil {
		in = os.Stdin
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, in)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("standard input: %w", err), f.Close())
	}
	return f, nil
}

func (im *importer) entry(ctx context.Context, e transcript.Entry) error {
	if !im.tree {
		e.Raw = nil
	}
	if e.Message == nil && e.Raw == nil {
		return nil // the report counts it by its kind
	}
	session := im.key
	if e.Session != "" {
		session += ":" + e.Session
	}
	item := e.Message
	if e.Raw != nil {
		item = e.Raw
		im.report.replay(e.Kind)
		if e.Kind == "session" && e.ID != "" && im.hostSession == importGateway {
			im.hostSession = hostSession(e.ID)
		}
	}
	b := im.pending[session]
	if b == nil {
		b = &batch{}
		im.pending[session] = b
	}
	if len(b.items) > 0 && (b.bytes+len(item) > batchBytes || (e.Raw == nil) != (len(b.keys) > 0)) {
		if err := im.flush(ctx, session, b); err != nil {
			return err
		}
	}
	b.items = append(b.items, item)
	if e.Raw == nil {
		b.keys = append(b.keys, entryKey(e))
	}
	b.told = append(b.told, e.Message != nil)
	if e.Message != nil {
		b.messages++
	}
	b.lines = append(b.lines, e.Line)
	b.bytes += len(item)
	im.held += len(item)
	switch {
	case len(b.items) >= im.batch:
		return im.flush(ctx, session, b)
	case im.held > heldBytes:
		return im.flushAll(ctx)
	}
	return nil
}

// hostSession is a transcript's own id, short enough for the wire.
func hostSession(id string) string {
	if len(id) > 400 {
		long := message.Hash([]byte(id), false)
		return hex.EncodeToString(long[:])
	}
	return id
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
// is in it is sent item by item, to find the one.
func (im *importer) flush(ctx context.Context, session string, b *batch) error {
	if len(b.items) == 0 {
		return nil
	}
	defer func() { im.held -= b.bytes; *b = batch{} }()
	added, head, err := im.send(ctx, session, b)
	if err == nil {
		im.took(session, b.messages, added, head)
		return nil
	}
	if !refused(err) {
		return err
	}
	for i := range b.items {
		one := b.part(i)
		added, head, err := im.send(ctx, session, one)
		switch {
		case err == nil:
			im.took(session, one.messages, added, head)
		case refused(err):
			im.report.refuse(b.lines[i], err.Error())
		default:
			return err
		}
	}
	return nil
}

func (im *importer) took(session string, messages, added int, head int64) {
	im.report.took(session, messages, added, head)
	im.progress.messages(im.report.New + im.report.AlreadyThere)
}

// send tries until the node is there: what comes twice is known. It answers how
// many messages were new.
func (im *importer) send(ctx context.Context, session string, b *batch) (added int, head int64, err error) {
	for try := 1; ; try++ {
		if len(b.keys) > 0 {
			var res contextengine.IngestBatchResult
			res, err = im.node.IngestBatch(ctx, session, b.items, b.keys)
			added, head = res.IngestedCount, res.Head
		} else {
			var res contextengine.TranscriptResult
			res, err = im.node.Transcript(ctx, session, contextengine.TranscriptParams{
				Session: contextengine.Session{SessionID: im.hostSession, GatewayID: importGateway}, Entries: b.items,
			})
			added, head = res.Messages, res.Head
		}
		wait, again := mayRetry(err, try)
		if !again || ctx.Err() != nil {
			return added, head, err
		}
		im.progress.note(fmt.Sprintf("%v; trying again", err))
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
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
