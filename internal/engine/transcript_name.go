package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// unnamedPage is how many messages that no transcript named are looked at for
// a page, beside twice its entries.
const unnamedPage = 2000

// candidate is a stored message that an entry may turn out to be.
type candidate struct {
	store.UnnamedMessage
	// turn is the committed turn it belongs to, nil for none.
	turn  *turn
	taken bool
}

// turn is a committed turn: its messages stand right before its event.
type turn struct {
	first, last         int64
	admission, terminal string
}

// anchorOf is the entry id of an anchor, and the key that the host put into the
// message.
func anchorOf(raw json.RawMessage) (entryID string) {
	var a struct {
		EntryID string `json:"entryId"`
	}
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	return a.EntryID
}

func turnOf(ev events.Event) (*turn, error) {
	var b events.TurnCommittedBody
	if err := json.Unmarshal(ev.Body, &b); err != nil {
		return nil, err
	}
	t := &turn{first: ev.Seq - int64(b.Count), last: ev.Seq - 1}
	if len(b.Known) == 0 { // else its ends may be elsewhere
		t.admission, t.terminal = anchorOf(b.Admission), anchorOf(b.Terminal)
	}
	return t, nil
}

// name finds the messages that came by a commit, an after-turn, a bootstrap or
// one by one before their entries did. The ids in a turn's anchors decide; what
// lies between two matched ends pairs in order and by equal content; else an
// entry is the next message of its lane with equal content that no entry has.
func (pg *page) name(ctx context.Context) error {
	wanted := 0
	for i := range pg.entries {
		if e := &pg.entries[i]; e.Kind == hostlog.Message && e.identity == isNew {
			wanted++
		}
	}
	if wanted == 0 {
		return nil
	}
	limit := unnamedPage + 2*len(pg.entries)
	rows, err := pg.tx.Unnamed(ctx, pg.pos.Unnamed, limit)
	if err != nil || len(rows) == 0 {
		if err == nil {
			pg.pos.Unnamed = pg.tx.Session.Head
		}
		return err
	}
	turns, err := pg.tx.Turns(ctx, rows[0].Seq, limit)
	if err != nil {
		return err
	}
	m := &matcher{lane: pg.row.Lane, byAdmission: map[string]*turn{}}
	if err := m.add(rows, turns); err != nil {
		return err
	}
	m.after(pg.pos.Newest)
	var unmatched []*placed
	for i := range pg.entries {
		e := &pg.entries[i]
		if e.Kind != hostlog.Message {
			continue
		}
		if e.identity != isNew {
			m.after(e.seq)
			continue
		}
		if seq := m.match(e); seq > 0 {
			e.identity, e.seq = isNamed, seq
		} else if e.read.EntryKey != "" || e.read.ResponseID != "" {
			unmatched = append(unmatched, e)
		}
	}
	if err := pg.nameByKeys(ctx, m, unmatched); err != nil {
		return err
	}
	pg.pos.Unnamed = m.rest(len(rows) == limit, pg.tx.Session.Head)
	return nil
}

// nameByKeys matches what came under the same key of the host's own with other
// bytes: a user's idempotency key, an assistant's response id.
func (pg *page) nameByKeys(ctx context.Context, m *matcher, entries []*placed) error {
	if len(entries) == 0 {
		return nil
	}
	var seqs []int64
	for i := range m.all {
		if c := &m.all[i]; !c.taken && m.own(c) && (c.turn == nil || c.turn.admission == "") {
			seqs = append(seqs, c.Seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	bodies, err := pg.tx.Bodies(ctx, seqs)
	if err != nil {
		return err
	}
	byKey := make(map[string]int64)
	for _, seq := range slices.Backward(seqs) { // the first of a key wins
		read, err := message.Read(bodies[seq])
		if err != nil {
			continue
		}
		for _, key := range hostKeys(read) {
			byKey[key] = seq
		}
	}
	for _, e := range entries {
		for _, key := range hostKeys(e.read) {
			if seq, ok := byKey[key]; ok && m.take(seq) {
				e.identity, e.seq = isNamed, seq
				break
			}
		}
	}
	return nil
}

// hostKeys are the identities that the host put into a message.
func hostKeys(m message.Message) []string {
	var out []string
	if m.EntryKey != "" && m.Role == message.User {
		out = append(out, "user\x00"+m.EntryKey)
	}
	if m.ResponseID != "" && m.Role == message.Assistant {
		out = append(out, "assistant\x00"+m.ResponseID)
	}
	return out
}

// matcher pairs a lane's entries, in the host's order, with stored messages
// that no transcript has named.
type matcher struct {
	lane        store.Lane
	all         []candidate
	byAdmission map[string]*turn
	// next is the place behind the newest match, open the turn it lies in.
	next int
	open *turn
}

func (m *matcher) add(rows []store.UnnamedMessage, turns []events.Event) error {
	m.all = make([]candidate, len(rows))
	var ts []*turn
	for _, ev := range turns {
		t, err := turnOf(ev)
		if err != nil {
			return err
		}
		ts = append(ts, t)
		if t.admission != "" {
			m.byAdmission[t.admission] = t
		}
	}
	at := 0
	for i, r := range rows {
		m.all[i].UnnamedMessage = r
		for at < len(ts) && ts[at].last < r.Seq {
			at++
		}
		if at < len(ts) && ts[at].first <= r.Seq {
			m.all[i].turn = ts[at]
		}
	}
	return nil
}

// after goes on behind a message of the lane that is known.
func (m *matcher) after(seq int64) {
	if seq <= 0 {
		return
	}
	m.next, _ = slices.BinarySearchFunc(m.all, seq+1, bySeq)
	m.open = nil
	if m.next < len(m.all) {
		if t := m.all[m.next].turn; t != nil && t.first <= seq {
			m.open = t
		}
	}
}

func bySeq(c candidate, seq int64) int { return cmp.Compare(c.Seq, seq) }

// own reports whether a message was delivered for this lane.
func (m *matcher) own(c *candidate) bool {
	return c.Lane.HostSession == m.lane.HostSession
}

// match is the seq of the message that an entry is, 0 for none.
func (m *matcher) match(e *placed) int64 {
	if t := m.byAdmission[e.ID]; t != nil {
		if i := m.index(t.first); i >= 0 && !m.all[i].taken {
			return m.pick(i)
		}
	}
	if m.open != nil && m.open.terminal != "" && m.open.terminal == e.ID {
		if i := m.index(m.open.last); i >= 0 && !m.all[i].taken {
			return m.pick(i)
		}
	}
	if m.open != nil {
		for i := m.next; i < len(m.all) && m.all[i].Seq <= m.open.last; i++ {
			if m.equal(i, e) {
				return m.pick(i)
			}
		}
	}
	// A turn whose admission has another id is another turn, however equal.
	free := func(i int) bool {
		t := m.all[i].turn
		return t == nil || t.admission == ""
	}
	strong := e.read.EntryKey != "" || e.read.ResponseID != "" || e.read.Timestamp != 0
	for pass := range 2 {
		from, to := m.next, len(m.all)
		if pass == 1 {
			from, to = 0, m.next
		}
		for i := from; i < to; i++ {
			c := &m.all[i]
			switch {
			case !free(i) || !m.equal(i, e):
			case m.own(c), c.Lane.HostSession == "" && (strong || m.nextFree() == i), strong && e.hasKey():
				return m.pick(i)
			}
		}
	}
	return 0
}

// hasKey reports an identity that the host put into the message: with it equal
// content is the same message, in whatever host session it came.
func (e *placed) hasKey() bool { return e.read.EntryKey != "" || e.read.ResponseID != "" }

// nextFree is the place of the next message that may be this lane's.
func (m *matcher) nextFree() int {
	for i := m.next; i < len(m.all); i++ {
		c := &m.all[i]
		if !c.taken && (m.own(c) || c.Lane.HostSession == "") {
			return i
		}
	}
	return -1
}

func (m *matcher) equal(i int, e *placed) bool {
	c := &m.all[i]
	return !c.taken && (bytes.Equal(c.Hash, e.hash[:]) || bytes.Equal(c.Hash, e.heartbeatHash()))
}

// heartbeatHash is the hash of the message as a heartbeat's, which a transcript
// does not tell.
func (e *placed) heartbeatHash() []byte {
	if e.beat == nil {
		h := message.Hash(e.Message, true)
		e.beat = h[:]
	}
	return e.beat
}

func (m *matcher) pick(i int) int64 {
	c := &m.all[i]
	c.taken = true
	m.next, m.open = i+1, c.turn
	return c.Seq
}

func (m *matcher) take(seq int64) bool {
	i := m.index(seq)
	if i < 0 || m.all[i].taken {
		return false
	}
	m.all[i].taken = true
	return true
}

func (m *matcher) index(seq int64) int {
	i, ok := slices.BinarySearchFunc(m.all, seq, bySeq)
	if !ok {
		return -1
	}
	return i
}

// rest is the seq before the first message that a later page may name.
func (m *matcher) rest(more bool, head int64) int64 {
	for i := range m.all {
		if c := &m.all[i]; !c.taken && (m.own(c) || c.Lane.HostSession == "") {
			return c.Seq - 1
		}
	}
	if more {
		return m.all[len(m.all)-1].Seq
	}
	return head
}
