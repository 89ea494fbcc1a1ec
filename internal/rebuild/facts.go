package rebuild

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
)

// facts reads a message's bytes again, if they are the ones that were stored.
func (f *fold) facts(e *store.Logged, now *store.DerivedEvent) (wrong bool) {
	m, err := message.Read(e.Body)
	if err != nil {
		f.notef(false, "body", "seq %d cannot be read: %v", e.Seq, err)
		return false
	}
	want := m.Facts(tokens.Message)
	// The hash tells what only the caller knew: whether it was a heartbeat's.
	beat, plain := message.Hash(e.Body, true), message.Hash(e.Body, false)
	switch {
	case bytes.Equal(beat[:], e.PayloadHash):
		want.Flags |= message.Heartbeat
	case bytes.Equal(plain[:], e.PayloadHash):
		// What its own text says it is, it stays.
	default:
		f.notef(false, "body", "seq %d is not the payload that was stored", e.Seq)
		return false
	}
	if f.dialect == 0 {
		f.dialect = int(want.Dialect)
	}
	if f.what&Facts == 0 {
		return false
	}
	got := e.Facts
	if e.FactsErr == nil && e.ReaderVersion == message.ReaderVersion && got.Role == want.Role && got.Dialect == want.Dialect &&
		got.Flags == want.Flags && got.Tokens == want.Tokens && slices.Equal(got.Calls, want.Calls) && slices.Equal(got.Results, want.Results) {
		return false
	}
	if e.ReaderVersion != message.ReaderVersion && e.FactsErr == nil && want.Tokens != got.Tokens {
		f.recount[e.Seq] = int64(want.Tokens - got.Tokens)
	}
	f.notef(true, "facts", "seq %d was not read as reader %d reads it", e.Seq, message.ReaderVersion)
	now.Facts, now.ReaderVersion = want, message.ReaderVersion
	return true
}

// summary keeps what states repeat of a summary.
func (f *fold) summary(e *store.Logged) {
	var b events.SummaryBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		f.notef(false, "log", "summary %d: %v", e.Seq, err)
		return
	}
	place := f.cur.Line.Place(e.Seq)
	f.known[place] = events.LiveSummary{
		Seq: place, Level: b.Level, Tokens: b.Tokens, Covers: b.Covers, CoveredTokens: b.CoveredTokens, Timestamp: b.Timestamp,
	}
}

// superseded keeps a message's shorter form for the step that follows.
func (f *fold) superseded(e *store.Logged) {
	var b events.MessageSupersededBody
	err := json.Unmarshal(e.Body, &b)
	if err == nil {
		var m message.Message
		if m, err = message.Read(b.By); err == nil {
			n := m.Facts(tokens.Message).Tokens
			x := events.Superseded{Seq: b.Seq, By: f.cur.Line.Place(e.Seq), Tokens: n}
			if own := b.Seq - f.cur.Line.Base(); own > 0 && own < int64(len(f.tree)) {
				x.Saved = int(f.tree[own].tokens) - n
			}
			f.short = append(f.short, x)
			f.shorter[x.By] = x.Seq
		}
	}
	if err != nil {
		f.notef(false, "log", "message.superseded %d: %v", e.Seq, err)
	}
}
