package verify

import (
	"bytes"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
)

// message compares the facts of a message with its bytes.
func (c *checker) message(e *store.Logged) {
	if c.behind.Seq > 0 && e.ParentSeq == c.behind.Seq && e.Offset != c.behind.Offset+int64(e.Facts.Tokens) {
		c.differf("offset", "seq %d is at %d tokens; the message before it at %d and it has %d", e.Seq, e.Offset, c.behind.Offset, e.Facts.Tokens)
	}
	c.behind = events.Event{Seq: e.Seq, Offset: e.Offset}
	if e.FactsErr != nil {
		c.differf("facts", "seq %d: %v", e.Seq, e.FactsErr)
		return
	}
	if e.ReaderVersion != message.ReaderVersion {
		c.differf("facts", "seq %d was read by reader %d, this is %d", e.Seq, e.ReaderVersion, message.ReaderVersion)
		return
	}
	m, err := message.Read(e.Body)
	if err != nil {
		c.differf("body", "seq %d cannot be read: %v", e.Seq, err)
		return
	}
	want, got := m.Facts(tokens.Message), e.Facts
	// That a message belongs to a heartbeat, its caller said.
	heartbeat := got.Flags.Has(message.Heartbeat)
	want.Flags |= got.Flags & message.Heartbeat
	if hash := message.Hash(e.Body, heartbeat); !bytes.Equal(hash[:], e.PayloadHash) {
		c.differf("body", "seq %d is not the payload that was stored", e.Seq)
	}
	switch {
	case got.Role != want.Role, got.Dialect != want.Dialect, got.Flags != want.Flags:
		c.differf("facts", "seq %d: role %v, dialect %v, flags %#x; its bytes say %v, %v, %#x",
			e.Seq, got.Role, got.Dialect, got.Flags, want.Role, want.Dialect, want.Flags)
	case got.Tokens != want.Tokens:
		c.differf("facts", "seq %d: %d tokens; its bytes say %d", e.Seq, got.Tokens, want.Tokens)
	case !slices.Equal(got.Calls, want.Calls), !slices.Equal(got.Results, want.Results):
		c.differf("facts", "seq %d: calls %q and results %q; its bytes say %q and %q", e.Seq, got.Calls, got.Results, want.Calls, want.Results)
	}
	if c.dialect == 0 {
		c.dialect = int(want.Dialect)
	}
}

// row compares the session's row with what its log came to.
func (c *checker) row(s store.Session) {
	last, stepped := c.at(s.Head + 1)
	if s.Head != c.newest.Seq {
		c.differf("head", "%d; the log ends at %d", s.Head, c.newest.Seq)
	}
	if s.HostHead < 0 || s.HostHead > s.Head {
		c.differf("head", "host head %d of %d", s.HostHead, s.Head)
	}
	if last.Err != nil {
		return
	}
	if s.Epoch != last.Epoch {
		c.differf("epoch", "%d; the newest state is of %d", s.Epoch, last.Epoch)
	}
	if want := -last.LiveTokens(0); stepped && s.BaseOffset != want {
		c.differf("offset", "base %d; the newest state says %d", s.BaseOffset, want)
	}
	if stepped && s.FactorMilli != last.FactorMilli {
		c.differf("factor", "%d; the newest state says %d", s.FactorMilli, last.FactorMilli)
	}
	// What a step left, its state does not repeat; what came since must fit it.
	if c.behind.Seq > 0 && s.LeafOffset != c.newest.Offset {
		c.differf("offset", "leaf at %d tokens; the newest event is at %d", s.LeafOffset, c.newest.Offset)
	}
	if len(c.line) == 0 && c.dialect != 0 && int(s.Dialect) != c.dialect {
		c.differf("dialect", "%d; the first message that tells says %d", s.Dialect, c.dialect)
	}
}
