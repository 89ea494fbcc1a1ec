package adopt

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
	turn  *committed
	taken bool
}

// committed is a turn of the log: its messages stand right before its event.
type committed struct {
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

func committedOf(ev events.Event) (*committed, error) {
	var b events.TurnCommittedBody
	if err := json.Unmarshal(ev.Body, &b); err != nil {
		return nil, err
	}
	t := &committed{first: ev.Seq - int64(b.Count), last: ev.Seq - 1}
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
	rows, more, err := pg.tx.Unnamed(ctx, pg.pos.Unnamed, limit)
	if err != nil {
		return err
	}
	head := pg.tx.State.Line.Place(pg.tx.Session.Head)
	if len(rows) == 0 {
		pg.pos.Unnamed = head
		return nil
	}
	turns, err := pg.tx.Turns(ctx, rows[0].Place, limit)
	if err != nil {
		return err
	}
	m := &matcher{lane: pg.row.Lane, byAdmission: map[string]*committed{}}
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
			m.after(e.place)
			continue
		}
		if place := m.match(e); place > 0 {
			e.identity, e.place = isNamed, place
		} else if e.Read.EntryKey != "" || e.Read.ResponseID != "" {
			unmatched = append(unmatched, e)
		}
	}
	if err := pg.nameByKeys(ctx, m, unmatched); err != nil {
		return err
	}
	pg.pos.Unnamed = m.rest(more, head)
	return nil
}

// nameByKeys matches what came under the same key of the host's own with other
// bytes: a user's idempotency key, an assistant's response id.
func (pg *page) nameByKeys(ctx context.Context, m *matcher, entries []*placed) error {
	if len(entries) == 0 {
		return nil
	}
	var places, seqs []int64
	line := pg.tx.State.Line
	for i := range m.all {
		if c := &m.all[i]; !c.taken && !c.Inherited && m.own(c) && (c.turn == nil || c.turn.admission == "") {
			places, seqs = append(places, c.Place), append(seqs, line.Seq(c.Place))
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
	for i, place := range slices.Backward(places) { // the first of a key wins
		read, err := message.Read(bodies[seqs[i]])
		if err != nil {
			continue
		}
		for _, key := range hostKeys(read) {
			byKey[key] = place
		}
	}
	for _, e := range entries {
		for _, key := range hostKeys(e.Read) {
			if place, ok := byKey[key]; ok && m.take(place) {
				e.identity, e.place = isNamed, place
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
	byAdmission map[string]*committed
	// next is the place behind the newest match, open the turn it lies in.
	next int
	open *committed
}

func (m *matcher) add(rows []store.UnnamedMessage, turns []events.Event) error {
	m.all = make([]candidate, len(rows))
	var ts []*committed
	for _, ev := range turns {
		t, err := committedOf(ev)
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
		for at < len(ts) && ts[at].last < r.Place {
			at++
		}
		if at < len(ts) && ts[at].first <= r.Place {
			m.all[i].turn = ts[at]
		}
	}
	return nil
}

// after goes on behind a message of the lane that is known.
func (m *matcher) after(place int64) {
	if place <= 0 {
		return
	}
	m.next, _ = slices.BinarySearchFunc(m.all, place+1, byPlace)
	m.open = nil
	if m.next < len(m.all) {
		if t := m.all[m.next].turn; t != nil && t.first <= place {
			m.open = t
		}
	}
}

func byPlace(c candidate, place int64) int { return cmp.Compare(c.Place, place) }

// own reports whether a message was delivered for this lane.
func (m *matcher) own(c *candidate) bool {
	return c.Lane.HostSession == m.lane.HostSession
}

// match is the place of the message that an entry is, 0 for none.
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
		for i := m.next; i < len(m.all) && m.all[i].Place <= m.open.last; i++ {
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
	strong := e.Read.EntryKey != "" || e.Read.ResponseID != "" || e.Read.Timestamp != 0
	for pass := range 2 {
		from, to := m.next, len(m.all)
		if pass == 1 {
			from, to = 0, m.next
		}
		for i := from; i < to; i++ {
			c := &m.all[i]
			switch {
			case !free(i) || !m.equal(i, e):
			case !c.Inherited && m.own(c), !c.Inherited && c.Lane.HostSession == "" && (strong || m.nextFree() == i), strong && e.hasKey():
				return m.pick(i)
			}
		}
	}
	return 0
}

// hasKey reports an identity that the host put into the message: with it equal
// content is the same message, in whatever host session it came.
func (e *placed) hasKey() bool { return e.Read.EntryKey != "" || e.Read.ResponseID != "" }

// nextFree is the place of the next message that may be this lane's.
func (m *matcher) nextFree() int {
	for i := m.next; i < len(m.all); i++ {
		c := &m.all[i]
		if !c.taken && !c.Inherited && (m.own(c) || c.Lane.HostSession == "") {
			return i
		}
	}
	return -1
}

func (m *matcher) equal(i int, e *placed) bool {
	c := &m.all[i]
	return !c.taken && (bytes.Equal(c.Hash, e.Digest[:]) || bytes.Equal(c.Hash, e.heartbeatHash()))
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
	return c.Place
}

func (m *matcher) take(place int64) bool {
	i := m.index(place)
	if i < 0 || m.all[i].taken {
		return false
	}
	m.all[i].taken = true
	return true
}

func (m *matcher) index(place int64) int {
	i, ok := slices.BinarySearchFunc(m.all, place, byPlace)
	if !ok {
		return -1
	}
	return i
}

// rest is the place before the first message that a later page may name.
func (m *matcher) rest(more bool, head int64) int64 {
	for i := range m.all {
		if c := &m.all[i]; !c.taken && !c.Inherited && (m.own(c) || c.Lane.HostSession == "") {
			return c.Place - 1
		}
	}
	if more {
		return m.all[len(m.all)-1].Place
	}
	return head
}
