package rebuild

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// checkRow compares the session's row with what its log came to.
func (f *fold) checkRow() {
	if f.what&States == 0 {
		return
	}
	want := f.row
	want.Head = f.newest
	if want.HostHead < 0 || want.HostHead > want.Head {
		want.HostHead = f.hostHead
	}
	want.Epoch = f.cur.Epoch
	if f.leafSure {
		want.LeafSeq, want.LeafOffset = f.leaf, f.leafOffset
	}
	if f.sure && len(f.all) > 0 {
		want.BaseOffset, want.FactorMilli = -f.cur.LiveTokens(0), f.cur.FactorMilli
	}
	// A fork has its parent's until the log of its own tells; it is not told which.
	if len(f.cur.Line) == 0 && f.dialect != 0 {
		want.Dialect = message.Dialect(f.dialect)
	}
	for _, c := range []struct {
		what, name string
		got, want  int64
	}{
		{"head", "head", f.row.Head, want.Head},
		{"head", "host head", f.row.HostHead, want.HostHead},
		{"epoch", "epoch", f.row.Epoch, want.Epoch},
		{"head", "leaf", f.row.LeafSeq, want.LeafSeq},
		{"offset", "the leaf's tokens", f.row.LeafOffset, want.LeafOffset},
		{"offset", "base", f.row.BaseOffset, want.BaseOffset},
		{"factor", "factor", int64(f.row.FactorMilli), int64(want.FactorMilli)},
		{"dialect", "dialect", int64(f.row.Dialect), int64(want.Dialect)},
	} {
		if c.got != c.want {
			f.notef(true, c.what, "%s %d, want %d", c.name, c.got, c.want)
			f.newRow = &want
		}
	}
}

// checkDebt compares what the session owes with what it should owe. Only the end
// of a turn puts a session into debt.
func (f *fold) checkDebt(ctx context.Context, v *store.Snapshot, s Store) error {
	if f.what&States == 0 {
		return nil
	}
	owed, owes, err := v.Owed(ctx)
	if err != nil {
		return err
	}
	row := f.row
	if f.newRow != nil {
		row = *f.newRow
	}
	want, should := s.Owing(row, f.model)
	switch {
	case owes && owed.Epoch > row.Epoch:
		f.notef(true, "debt", "of epoch %d, the session is in %d", owed.Epoch, row.Epoch)
		if !should {
			want = store.Debt{}
		}
		f.debt = &want
	case !owes && should && f.turned:
		f.notef(true, "debt", "of %d tokens is missing", want.Tokens)
		f.debt = &want
	}
	return nil
}

// checkKeys finds keys that lost their event, and turns that lost their key.
func (f *fold) checkKeys(ctx context.Context, v *store.Snapshot) error {
	if f.what&Keys == 0 {
		return nil
	}
	amiss, err := v.AmissKeys(ctx, mostKeys)
	if err != nil {
		return err
	}
	for _, k := range amiss {
		row := k.KeyRow
		switch {
		case k.Only > 0:
			f.notef(true, "key", "of kind %d names seq %d, its payload is that of seq %d", k.Kind, k.Seq, k.Only)
			row.Seq = k.Only
		case k.EventHash != nil:
			f.notef(true, "key", "of kind %d names seq %d with another payload", k.Kind, k.Seq)
			row.Hash = k.EventHash
		default:
			f.notef(false, "key", "of kind %d names seq %d, which is lost", k.Kind, k.Seq)
			continue
		}
		f.keys = append(f.keys, row)
	}
	turns, err := v.KeylessTurns(ctx, mostKeys)
	if err != nil {
		return err
	}
	for i := range turns {
		var b events.TurnCommittedBody
		if err := json.Unmarshal(turns[i].Body, &b); err != nil || b.AdvancementKey == "" {
			f.notef(false, "key", "the turn committed at seq %d does not tell its key", turns[i].Seq)
			continue
		}
		f.notef(true, "key", "the turn committed at seq %d has none", turns[i].Seq)
		f.newKeys = append(f.newKeys, store.KeyRow{
			Key: store.Key{Kind: store.TurnKey, Value: []byte(b.AdvancementKey)}, Seq: turns[i].Seq, Hash: turns[i].PayloadHash,
		})
	}
	return nil
}

// write stores what differs.
func (f *fold) write(ctx context.Context, w *store.Repair) error {
	for page := range slices.Chunk(f.events, writePage) {
		if err := w.RewriteFacts(ctx, page); err != nil {
			return err
		}
	}
	for _, asOf := range f.drop {
		if err := w.DropState(ctx, asOf); err != nil {
			return err
		}
	}
	for _, st := range f.put {
		if err := w.PutState(ctx, st); err != nil {
			return err
		}
	}
	if f.newRow != nil {
		if err := w.RewriteSession(ctx, *f.newRow); err != nil {
			return err
		}
	}
	for _, k := range f.keys {
		if err := w.RewriteKey(ctx, k); err != nil {
			return err
		}
	}
	for _, k := range f.newKeys {
		if err := w.PutKey(ctx, k); err != nil {
			return err
		}
	}
	if f.debt != nil {
		return w.SetDebt(ctx, *f.debt, f.debt.Epoch > 0)
	}
	return nil
}
