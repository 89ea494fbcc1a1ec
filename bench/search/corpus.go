package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

// history is the messages of one session.
type history struct {
	key      string
	messages []json.RawMessage
}

const atOnce = 500

// fill stores and indexes the corpus, where the database does not have it yet.
func (b *bench) fill(ctx context.Context, o *options) error {
	if err := b.count(ctx); err != nil || b.messages > 0 {
		return err
	}
	histories, err := readAll(ctx, o.transcripts)
	if err != nil {
		return err
	}
	if o.locomo != "" {
		talks, err := readLocomo(o.locomo)
		if err != nil {
			return err
		}
		for _, h := range talks {
			if err := b.say(ctx, h.key, h.messages); err != nil {
				return err
			}
			o.messages -= len(h.messages)
		}
	}
	for copies := 0; o.messages > 0; copies++ {
		for _, h := range histories {
			if err := b.say(ctx, fmt.Sprintf("%s:%d", h.key, copies), h.messages[:min(len(h.messages), max(o.messages, 0))]); err != nil {
				return err
			}
			o.messages -= len(h.messages)
		}
	}
	began := time.Now()
	for behind := true; behind; {
		if _, err := b.indexer.Index(ctx, tenant, time.Minute); err != nil {
			return err
		}
		state, err := b.store.SearchState(ctx, tenant, nil)
		if err != nil {
			return err
		}
		behind = state.Behind
	}
	b.indexedIn = time.Since(began)
	if err := b.plainIndex(ctx); err != nil {
		return err
	}
	return b.count(ctx)
}

func (b *bench) say(ctx context.Context, key string, messages []json.RawMessage) error {
	for chunk := range slices.Chunk(messages, atOnce) {
		_, err := b.engine.IngestBatch(ctx, contextengine.IngestBatchParams{
			Session: contextengine.Session{Tenant: tenant, SessionKey: key}, Messages: chunk,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// readAll reads every transcript below a directory; what is none is left out.
func readAll(ctx context.Context, dir string) ([]history, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var out []history
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		of, err := readTranscript(ctx, root, path)
		out = append(out, of...)
		return err
	})
	slices.SortFunc(out, func(a, b history) int { return strings.Compare(a.key, b.key) })
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no transcripts in %q", dir)
	}
	return out, err
}

// readTranscript reads the sessions of a file.
func readTranscript(ctx context.Context, root *os.Root, path string) ([]history, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	by := map[string]*history{}
	_, err = transcript.Read(ctx, path, f, func(e transcript.Entry) error {
		if _, err := message.Read(e.Message); err != nil {
			return nil //nolint:nilerr // an entry without a message, or a broken one
		}
		h := by[e.Session]
		if h == nil {
			h = &history{key: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + e.Session}
			by[e.Session] = h
		}
		h.messages = append(h.messages, e.Message)
		return nil
	})
	if err != nil && !errors.Is(err, transcript.ErrUnknownFormat) {
		return nil, err
	}
	var out []history
	for _, h := range by {
		out = append(out, *h)
	}
	return out, nil
}

// readLocomo reads the talks of a LoCoMo file.
func readLocomo(path string) ([]history, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := json.Unmarshal(raw, &samples); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []history
	for _, s := range samples {
		h := history{key: "locomo:" + s.ID}
		for n := 1; n < 100; n++ { // more than any has
			var said []struct{ Speaker, Text string }
			if sitting := s.Conversation[fmt.Sprintf("session_%d", n)]; sitting == nil {
				continue
			} else if err := json.Unmarshal(sitting, &said); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, t := range said {
				m, err := json.Marshal(map[string]string{"role": "user", "name": t.Speaker, "content": t.Text})
				if err != nil {
					return nil, err
				}
				h.messages = append(h.messages, m)
			}
		}
		out = append(out, h)
	}
	return out, nil
}
