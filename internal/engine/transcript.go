package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/adopt"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// maxCursorBytes bounds the host's bookmark.
const maxCursorBytes = 16 << 10

// Transcript takes a page of a host's transcript over: its messages, where its
// leaf is and what it hides. What came by another way before is recognised. The
// page and the host's bookmark behind it are stored together or not at all.
func (l *Lossless) Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	if err := checkTranscript(p.Session); err != nil {
		return contextengine.TranscriptResult{}, err
	}
	return l.writer.transcript(ctx, p)
}

// TranscriptCursor is where a host goes on with a transcript.
func (l *Lossless) TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error) {
	var none contextengine.TranscriptCursor
	if err := checkTranscript(s); err != nil {
		return none, err
	}
	cursor, revision, err := l.cfg.Log.LaneCursor(ctx, s.Tenant, s.SessionKey, store.Lane{Gateway: s.GatewayID, HostSession: s.SessionID})
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return contextengine.TranscriptCursor{Cursor: cursorText(cursor), LifecycleRevision: revision}, nil
}

func cursorText(cursor []byte) *string {
	if cursor == nil {
		return nil
	}
	s := string(cursor)
	return &s
}

func checkTranscript(s contextengine.Session) error {
	if err := checkSession(s); err != nil {
		return err
	}
	if s.SessionID == "" {
		return &contextengine.InvalidError{Field: "sessionId", Reason: "is required"}
	}
	return nil
}

func (w *writer) transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	var res contextengine.TranscriptResult
	if p.Cursor != nil && len(*p.Cursor) > maxCursorBytes {
		return res, &contextengine.InvalidError{Field: "cursor", Reason: fmt.Sprintf("at most %d bytes", maxCursorBytes), Limit: maxCursorBytes}
	}
	entries, err := w.hostEntries(p.Entries)
	if err != nil {
		return res, err
	}
	var stepped []store.Stepped
	lane := store.Lane{Gateway: p.GatewayID, HostSession: p.SessionID}
	var session store.Session
	err = w.cfg.Log.InLane(ctx, p.Tenant, p.SessionKey, lane, func(tx *store.LaneTx) error {
		taken, err := adopt.Take(ctx, tx, p, entries)
		if err != nil {
			return err
		}
		stepped, session = taken.Steps, tx.Session
		res = contextengine.TranscriptResult{
			Stored: taken.Stored, Duplicates: len(entries) - taken.Stored, Messages: taken.Messages, Cursor: cursorText(taken.Cursor),
			Head: tx.Session.Head, Epoch: tx.Session.Epoch,
		}
		return nil
	})
	if err != nil {
		return contextengine.TranscriptResult{}, err
	}
	for _, s := range stepped {
		w.cfg.Notifier.EpochRotated(p.Tenant, session.SID, s.Head, s.Epoch)
	}
	return res, nil
}

// hostEntries reads the entries of a page.
func (w *writer) hostEntries(raws []json.RawMessage) ([]adopt.Entry, error) {
	if len(raws) > w.cfg.MaxBatch {
		return nil, &contextengine.InvalidError{
			Field: "entries", Reason: fmt.Sprintf("at most %d entries in one call", w.cfg.MaxBatch),
			Limit: int64(w.cfg.MaxBatch), TooLarge: true,
		}
	}
	out := make([]adopt.Entry, len(raws))
	for i, raw := range raws {
		field := fmt.Sprintf("entries[%d]", i)
		if err := message.Check(raw, w.cfg.Limits); err != nil {
			return nil, invalid(field, err)
		}
		e, err := hostlog.Decode(raw)
		if err != nil {
			return nil, invalid(field, err)
		}
		out[i] = adopt.Entry{Entry: e, Digest: e.Hash()}
		if e.Kind != hostlog.Message {
			continue
		}
		if out[i].Event, err = w.event(e.Message, false, field+".message"); err != nil {
			return nil, err
		}
		if out[i].Read, err = message.Read(e.Message); err != nil {
			return nil, invalid(field+".message", err)
		}
	}
	return out, nil
}
