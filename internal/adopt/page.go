package adopt

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// position is what is remembered of a lane's end between pages.
type position struct {
	// Leaf is the entry at which the host's leaf stands.
	Leaf string `json:"leaf,omitempty"`
	// Copied tells that the lane repeats entries of another one of its gateway,
	// Settled that it has gone on by itself since: from then on its path is what
	// the session shows of it.
	Copied  bool `json:"copied,omitempty"`
	Settled bool `json:"settled,omitempty"`
	// Unnamed is a place behind which everything is that this lane may still
	// name.
	Unnamed int64 `json:"unnamed,omitempty"`
	// Newest is the place of the lane's newest message.
	Newest int64 `json:"newest,omitempty"`
	// Places counts the entries without ids before the cursor, Before those
	// before the newest page.
	Places int `json:"places,omitempty"`
	Before int `json:"before,omitempty"`
}

// identity is what an entry turned out to be.
type identity uint8

const (
	// isNew was never seen.
	isNew identity = iota
	// isKnown was read from this lane before.
	isKnown
	// isCopied was read from another lane.
	isCopied
	// isNamed came as a message or a reset before, and is named now.
	isNamed
)

// placed is an entry of a page and what is known of it.
type placed struct {
	*Entry
	identity identity
	// beat is its hash as a heartbeat's, once needed.
	beat []byte
	// variant tells it from another entry of the lane with the same id.
	variant string
	// parent is the entry it follows, resolved.
	parent string
	// place is where its event stands in the session's line: of a message or
	// reset its own, else the one that records it.
	place int64
}

// node is the entry's name in the lane's tree.
func (e *placed) node() string {
	if e.variant != "" {
		return e.ID + "~" + e.variant
	}
	return e.ID
}

// Entry is an entry of a page.
type Entry struct {
	hostlog.Entry
	// Digest is the entry's hash. Of a message: the event that stores it, and what
	// was read of it.
	Digest [32]byte
	Event  store.NewEvent
	Read   message.Message
}

// Taken is what became of a page.
type Taken struct {
	// Stored counts the entries that are new, Messages those that are messages.
	Stored, Messages int
	// Cursor is the host's bookmark behind the page.
	Cursor []byte
	// Steps are the epochs it made.
	Steps []store.Stepped
}

// Take stores what a page of a lane's transcript has that is new.
func Take(ctx context.Context, tx *store.LaneTx, p contextengine.TranscriptParams, entries []Entry) (Taken, error) {
	pg, err := pageOf(tx, p, entries)
	if err != nil {
		return Taken{}, err
	}
	if err := pg.take(ctx); err != nil {
		return Taken{}, err
	}
	return Taken{Stored: pg.stored, Messages: pg.messages, Cursor: pg.row.Cursor, Steps: pg.stepped}, nil
}

// page is a page of a lane on its way into the log.
type page struct {
	tx      *store.LaneTx
	p       contextengine.TranscriptParams
	entries []placed
	row     store.LaneRow
	pos     position
	// tree is the lane's, whole once loaded; until then the page's part of it.
	tree   *hostlog.Tree
	loaded bool
	// family are the messages that lanes of this one's kin have named.
	family map[int64]bool

	stored, messages int
	stepped          []store.Stepped
}

func pageOf(tx *store.LaneTx, p contextengine.TranscriptParams, entries []Entry) (*page, error) {
	pg := &page{tx: tx, p: p, row: tx.Lane, tree: hostlog.NewTree(), entries: make([]placed, len(entries))}
	if len(tx.Lane.Position) > 0 {
		if err := json.Unmarshal(tx.Lane.Position, &pg.pos); err != nil {
			return nil, fmt.Errorf("lane: %w", err)
		}
	}
	for i := range entries {
		pg.entries[i].Entry = &entries[i]
	}
	pg.derive()
	return pg, nil
}

// derive gives the entries without ids theirs. A page that comes again, under
// the cursor that is kept, counts from where it did; one with the transcript's
// header from the start.
func (pg *page) derive() {
	place := pg.pos.Places
	if c := pg.p.Cursor; c != nil && pg.tx.Known && pg.row.Cursor != nil && string(pg.row.Cursor) == *c {
		place = pg.pos.Before
	}
	pg.pos.Before = place
	for i := range pg.entries {
		e := &pg.entries[i]
		if e.Kind == hostlog.Header {
			place = 0
			pg.pos.Before = 0
		}
		if e.ID == "" {
			e.ID = e.Derive(place)
			place++
		}
	}
	pg.pos.Places = place
}

// take stores the page.
func (pg *page) take(ctx context.Context) error {
	if err := pg.identify(ctx); err != nil {
		return err
	}
	if err := pg.name(ctx); err != nil {
		return err
	}
	if err := pg.write(ctx); err != nil {
		return err
	}
	if pg.p.Cursor != nil {
		pg.row.Cursor = []byte(*pg.p.Cursor)
	}
	if pg.p.LifecycleRevision != "" {
		pg.row.Revision = pg.p.LifecycleRevision
	}
	var err error
	if pg.row.Position, err = json.Marshal(pg.pos); err != nil {
		return err
	}
	return pg.tx.SaveLane(ctx, pg.row)
}

// identify tells which entries are known by their ids.
func (pg *page) identify(ctx context.Context) error {
	ids := make([]string, 0, 2*len(pg.entries))
	asked := make(map[string]bool)
	ask := func(id string) {
		if id != "" && !asked[id] {
			asked[id] = true
			ids = append(ids, id)
		}
	}
	for i := range pg.entries {
		e := &pg.entries[i]
		ask(e.ID)
		ask(e.Parent)
		ask(e.Target)
	}
	known, err := pg.tx.Entries(ctx, ids)
	if err != nil {
		return err
	}
	byID := make(map[string][]store.KnownEntry, len(known))
	for _, k := range known {
		byID[k.ID] = append(byID[k.ID], k)
	}
	// Leaf moves of the page, so that what follows one follows its target.
	moved := make(map[string]string)
	inLane := make(map[string]bool)
	previous := pg.pos.Leaf
	for i := range pg.entries {
		e := &pg.entries[i]
		pg.recognise(e, byID[e.ID])
		// Nothing follows a record whose id was another's: the id is that one's.
		e.Side = e.Side || e.variant != "" && e.Kind == hostlog.Record
		here := func(id string) bool {
			return inLane[id] || slices.ContainsFunc(byID[id], func(k store.KnownEntry) bool { return k.Lane == pg.row.Lane && !k.Inherited })
		}
		switch {
		case e.Kind == hostlog.Leaf:
			if e.Target != "" && !here(e.Target) {
				e.Target = previous // it moves nowhere
			}
			e.parent = e.Target
		case e.Rooted:
		case e.Parent != "" && here(e.Parent):
			e.parent = e.Parent
			if to, ok := moved[e.parent]; ok {
				e.parent = to
			}
		default:
			e.parent = previous // no parent, a dangling one, or a cycle
		}
		inLane[e.ID] = true
		switch {
		case e.Kind == hostlog.Leaf:
			moved[e.ID] = e.Target
			previous = e.Target
		case e.Kind != hostlog.Header && !e.Side:
			previous = e.node()
		}
		// An entry may come twice in one page.
		if e.identity != isKnown {
			byID[e.ID] = append(byID[e.ID], store.KnownEntry{
				ID: e.ID, Lane: pg.row.Lane, Variant: e.variant, Place: pending(i), Hash: e.Digest[:],
			})
		}
	}
	return nil
}

// pending stands for the place of an entry of the same page, which is not known
// yet: below zero, so that it is never taken for one.
func pending(i int) int64 { return -1 - int64(i) }

func (pg *page) recognise(e *placed, known []store.KnownEntry) {
	taken := false
	for _, k := range known {
		mine, same := k.Lane == pg.row.Lane && !k.Inherited, bytes.Equal(k.Hash, e.Digest[:])
		switch {
		case mine && same:
			e.identity, e.place, e.variant = isKnown, k.Place, k.Variant
			return
		case mine && k.Variant == "":
			taken = true
		case !mine && same && e.identity == isNew:
			e.identity, e.place = isCopied, k.Place
			if (k.Inherited || k.Lane.Gateway == pg.row.Gateway) && e.Kind != hostlog.Header {
				pg.pos.Copied = true
			}
		}
	}
	if taken {
		e.variant = hex.EncodeToString(e.Digest[:8])
	}
}

// link is what the log is to know of the entry.
func (e *placed) link() events.LinkedEntry {
	out := events.LinkedEntry{
		ID: e.ID, Parent: e.parent, Type: e.Type, Variant: e.variant, FirstKept: e.FirstKept,
		Result: e.Kind == hostlog.Message && e.Read.Role == message.Result,
	}
	if e.Kind == hostlog.Message || e.Kind == hostlog.Reset {
		out.Place = e.place
	}
	if e.Kind != hostlog.Message && e.identity != isCopied {
		out.Record = string(e.Raw)
	}
	return out
}

func (e *placed) treeNode() hostlog.Node {
	n := hostlog.Node{
		ID: e.node(), Parent: e.parent, Kind: e.Kind, Type: e.Type, FirstKept: e.FirstKept,
		Result: e.Kind == hostlog.Message && e.Read.Role == message.Result,
	}
	if e.Kind == hostlog.Message || e.Kind == hostlog.Reset {
		n.Place = e.place
	}
	if e.variant != "" {
		n.Shared = e.ID
	}
	return n
}
