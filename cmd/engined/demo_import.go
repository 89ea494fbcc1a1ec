package main

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/engined/engined/internal/transcript"
)

// demoSession is a real session of a coding agent; see demo/NOTICE.
//
//go:embed demo/session.jsonl.gz
var demoSession []byte

// sentMessage is a message as it stands in the transcript.
type sentMessage = json.RawMessage

// importSession imports the bundled transcript as `engined import` does.
func (d *demo) importSession(ctx context.Context) error {
	path, err := d.unpack(ctx)
	if err != nil {
		return err
	}
	began := d.c.now()
	r, err := d.importFile(ctx, path)
	if err != nil {
		return err
	}
	s, err := d.node.Session(ctx, d.key)
	if err != nil {
		return err
	}
	d.headThen = s.Head
	took := d.c.now().Sub(began)
	fmt.Fprintln(d.c.out, "\n2. Import: a session of the coding agent pi")
	if r.New != len(d.sent) || s.Head < int64(r.New) {
		return fmt.Errorf("demo: %d of %d messages were stored, head %d", r.New, len(d.sent), s.Head)
	}
	d.okf("%s stored in %s, %s tokens", plural(r.New, "message"), took.Round(time.Millisecond), thousands(s.Tokens))
	return nil
}

// unpack writes the transcript into the demo's directory and remembers its
// messages.
func (d *demo) unpack(ctx context.Context) (string, error) {
	zr, err := gzip.NewReader(bytes.NewReader(demoSession))
	if err != nil {
		return "", fmt.Errorf("demo: transcript: %w", err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(zr); err != nil {
		return "", fmt.Errorf("demo: transcript: %w", err)
	}
	path := filepath.Join(d.dir, "session.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return "", err
	}
	_, err = transcript.Read(ctx, path, &text, func(e transcript.Entry) error {
		if e.Message != nil {
			d.sent = append(d.sent, e.Message)
		}
		return nil
	})
	return path, err
}

func (d *demo) importFile(ctx context.Context, path string) (*fileReport, error) {
	im := &importer{node: d.node, key: d.key, batch: 500, progress: newProgress(d.c.err, false, d.c.now)}
	im.progress.quiet = true
	r := im.file(ctx, path)
	return r, r.err
}
