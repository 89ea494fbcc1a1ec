package window

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/engined/engined/internal/message"
)

// fingerprintVersion changes when the rules of this package do.
const fingerprintVersion = 3

// fingerprint names the prefix that the window shares with later ones.
//
// It covers all that stands in front of the tail, item by item, and the edge
// at which the tail starts. The tail itself grows with the log, so of it only
// lastDisturbance goes in: as long as that stays, each append has only put
// messages behind those that were there, and the earlier window is a prefix.
func (b *builder) fingerprint(f fitting) string {
	in := &b.in
	buf := make([]byte, 0, 256)
	put := func(v int64) { buf = binary.AppendVarint(buf, v) }
	put(fingerprintVersion)
	put(in.Epoch)
	put(in.budget())
	put(in.factor())
	put(int64(in.Dialect))
	put(int64(len(in.PolicyHash)))
	buf = append(buf, in.PolicyHash...)
	put(b.plan.TrimFrom)
	from, edge := 0, int64(0)
	if f.start > 0 {
		from = len(in.Entries)
	}
	if f.start > 0 && f.start < len(b.units) {
		from = int(b.units[f.start].head)
		edge = in.Entries[from].Seq
	}
	put(edge)
	put(b.lastDisturbance(from))
	put(int64(len(b.plan.Summaries)))
	for i, s := range b.plan.Summaries {
		put(s.Seq)
		put(int64(b.plan.Items[i].CutTo))
	}
	put(int64(len(b.pinned)))
	for _, it := range b.pinned {
		put(it.Seq)
		put(int64(it.CutTo))
		if it.WithoutResults {
			put(-1)
		}
	}
	if b.pruned.trim > 0 {
		put(b.pruned.trim)
		put(b.pruned.clear)
	}
	if b.opened {
		put(-2)
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:16])
}

// lastDisturbance is the seq of the newest append that changed the tail other
// than at its end; from is the tail's first entry. Three things do that: a
// shown message is taken out (its call died or got its last result, its heartbeat
// retired), a newer result takes the place of an older one, or a message gets its
// place in front of others that were there before.
func (b *builder) lastDisturbance(from int) int64 {
	last := int64(0)
	for i := from; i < len(b.in.Entries); i++ {
		dead := b.why[i] == Unanswered && b.in.Entries[i].Role == message.Assistant
		if dead || b.why[i] == HeartbeatDone {
			last = max(last, b.at[i])
		}
	}
	for i := range b.groups {
		// What an unanswered group changed was not shown.
		if g := &b.groups[i]; int(g.head) >= from && b.why[g.head] != Unanswered {
			last = max(last, g.changedAt)
		}
	}
	for i, at := range b.joined {
		if int(i) >= from {
			last = max(last, at)
		}
	}
	newest := int64(0)
	for _, at := range b.tailAt {
		if at < newest {
			last = max(last, newest)
		}
		newest = max(newest, at)
	}
	return last
}
