package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// KeyKind says what a key of an event identifies. The numbers are stored.
type KeyKind int16

// The kinds of keys.
const (
	// ClientKey is an idempotency key that a client chose.
	ClientKey KeyKind = 1
	// HostEntryKey is (gateway, host session id, entry id).
	HostEntryKey KeyKind = 2
	// TurnKey is the advancement key of a committed turn.
	TurnKey KeyKind = 3
	// DeltaKey is the hash of what an after-turn call delivered.
	DeltaKey KeyKind = 4
	// AnchorKey is what a turn's first message is known by before it has a lane:
	// its host entry id, or the key that the host put into it.
	AnchorKey KeyKind = 5
)

// Key identifies an event within its session.
type Key struct {
	Kind  KeyKind
	Value []byte
}

// NewEvent is an event to append. Keys holds at most two.
type NewEvent struct {
	Type events.Type
	Body []byte
	// Hash is what payload equality means for the event's keys.
	Hash  [32]byte
	Facts message.Facts
	Keys  []Key
}

// SamePayload compares a stored hash with a message of a history, which does not
// say whether the message came with a heartbeat.
func (e *NewEvent) SamePayload(stored []byte) bool {
	if bytes.Equal(stored, e.Hash[:]) {
		return true
	}
	h := message.Hash(e.Body, true)
	return bytes.Equal(stored, h[:])
}

// Item is one request: its events are appended together or not at all.
type Item struct {
	Tenant, SessionKey string
	// Create opens the session where it is missing.
	Create bool
	// Host is set for what a host's call wrote; it moves the host head.
	Host                 bool
	Gateway, HostSession string
	ExpectedHead         *int64
	ExpectedEpoch        *int64
	LeaseToken           string
	// Gate, if positive, is the 1-based event whose known key makes the whole
	// item a duplicate.
	Gate int
	// Budget is the token budget the call reported; 0 when it did not.
	Budget int64
	// Owes lets the item put the session into debt when it crosses the threshold.
	Owes bool
	// Model decides by which threshold; see Config.DebtMilliOf.
	Model string
	// ScaleMilli is by how much Model counts more for this than the session's own
	// factor says, in thousandths; 0 is as much.
	ScaleMilli int
	Events     []NewEvent
	// ofSealed: it opens a session that descends from an encrypted one, so that it
	// is encrypted too: it repeats what its ancestors say.
	ofSealed bool
	// pinned is the life that the item is encrypted for; zero where it is not.
	pinned uuid.UUID
}

// HostItem starts a host's write to a session.
func HostItem(s contextengine.Session, x contextengine.Expectations) *Item {
	return &Item{
		Tenant: s.Tenant, SessionKey: s.SessionKey, Create: true, Host: true,
		Gateway: s.GatewayID, HostSession: s.SessionID, LeaseToken: s.LeaseToken,
		ExpectedHead: x.ExpectedHead, ExpectedEpoch: x.ExpectedEpoch,
	}
}

// Appended is the outcome of an item.
type Appended struct {
	SID                   uuid.UUID
	Head, HostHead, Epoch int64
	// Seqs has one entry per event; 0 where a gate answered for the item.
	Seqs []int64
	// Known marks the events that were there before.
	Known []bool
	// Duplicate is set when nothing was new.
	Duplicate bool
	// Debt is set when the item left its session in debt.
	Debt bool
}

// The verdicts of append_events.
const (
	verdictAppended = iota
	verdictBusy
	verdictUnknown
	verdictErased
	verdictConflict
	verdictStaleHead
	verdictEpoch
	verdictLease
	verdictKnown
	_ // a lease that another owner holds
	verdictOtherLife
)

type outcome struct {
	verdict               int32
	sid                   uuid.UUID
	head, hostHead, epoch int64
	debt                  bool
	seqs                  []int64
	known                 []bool
}

// result turns an outcome into what the caller of Append sees.
func (o *outcome) result(it *Item) (Appended, error) {
	switch o.verdict {
	case verdictAppended, verdictKnown:
		return Appended{
			SID: o.sid, Head: o.head, HostHead: o.hostHead, Epoch: o.epoch, Debt: o.debt,
			Seqs: o.seqs, Known: o.known, Duplicate: o.verdict == verdictKnown,
		}, nil
	case verdictUnknown:
		return Appended{}, contextengine.ErrUnknownSession
	case verdictErased:
		return Appended{}, contextengine.ErrSessionErased
	case verdictConflict:
		return Appended{}, &contextengine.IdempotencyConflictError{Key: it.onlyKey(), Seq: o.seqs[0]}
	case verdictStaleHead:
		return Appended{}, &contextengine.StaleHeadError{Expected: *it.ExpectedHead, Head: o.head}
	case verdictEpoch:
		return Appended{}, &contextengine.EpochConflictError{Expected: *it.ExpectedEpoch, Epoch: o.epoch}
	case verdictLease:
		return Appended{}, ErrLeaseStale
	case verdictOtherLife:
		if it.pinned == (uuid.UUID{}) {
			return Appended{}, fmt.Errorf("%w: %w", errOtherLife, vault.ErrClosed)
		}
		return Appended{}, errOtherLife
	}
	return Appended{}, fmt.Errorf("append: unexpected verdict %d", o.verdict)
}

// onlyKey names the client's key in a conflict, where just one is possible.
func (it *Item) onlyKey() string {
	var found []byte
	n := 0
	for i := range it.Events {
		for _, k := range it.Events[i].Keys {
			if k.Kind == ClientKey || k.Kind == TurnKey {
				found, n = k.Value, n+1
			}
		}
	}
	if n != 1 {
		return ""
	}
	return string(found)
}

// conditional items see only what was committed before their batch, so within
// a batch nothing else may write to their session.
func (it *Item) conditional() bool {
	return it.ExpectedHead != nil || it.ExpectedEpoch != nil || it.Gate > 0
}

const (
	dialectShift = 24
	// largeBody is where append_events moves a body into its own table.
	largeBody = 256 << 10
)

// params lays the items of one batch out as the parallel arrays of append_events.
// Items of one session must stand next to each other.
func (s *Store) params(items []*Item, try bool) db.AppendEventsParams {
	n, events := len(items), 0
	for _, it := range items {
		events += len(it.Events)
	}
	p := db.AppendEventsParams{
		TenantID: items[0].Tenant, TryLocks: try,
		DefaultBudget: s.cfg.DefaultBudget, DebtMilli: s.debtMilli(items),
		IKey: make([]string, 0, n), ISID: make([]uuid.UUID, 0, n), ICreate: make([]bool, 0, n), IHost: make([]bool, 0, n),
		IGateway: make([]string, 0, n), IHostSession: make([]string, 0, n), IExpectedHead: make([]int64, 0, n),
		IExpectedEpoch: make([]int64, 0, n), ILease: make([]string, 0, n), IGate: make([]int32, 0, n),
		IBudget: make([]int64, 0, n), IOwes: make([]bool, 0, n), IEvents: make([]int32, 0, n),
		IKeyed: make([]bool, 0, n), ILarge: make([]bool, 0, n),
		EItem: make([]int32, 0, events), EType: make([]int16, 0, events), EHash: make([][]byte, 0, events),
		EBody: make([][]byte, 0, events), EVersion: make([]int16, 0, events), ERole: make([]int16, 0, events),
		ETokens: make([]int32, 0, events), EFlags: make([]int32, 0, events), ELinks: make([][]byte, 0, events),
		EKind: make([]int16, 0, events), EKey: make([][]byte, 0, events),
		EKind2: make([]int16, 0, events), EKey2: make([][]byte, 0, events), ISealed: []bool{},
	}
	opened := make(map[string]uuid.UUID, len(items))
	for i, it := range items {
		sid, ok := opened[it.SessionKey]
		if !ok {
			sid = uuid.Must(uuid.NewV7())
			opened[it.SessionKey] = sid
		}
		if it.pinned != (uuid.UUID{}) {
			sid = it.pinned
			p.ISealed = append(p.ISealed, make([]bool, i+1-len(p.ISealed))...)
			p.ISealed[i] = true
		}
		gate := 0
		if it.Gate > 0 {
			gate = len(p.EType) + it.Gate
		}
		p.IKey = append(p.IKey, it.SessionKey)
		p.ISID = append(p.ISID, sid)
		p.ICreate = append(p.ICreate, it.Create)
		p.IHost = append(p.IHost, it.Host)
		p.IGateway = append(p.IGateway, it.Gateway)
		p.IHostSession = append(p.IHostSession, it.HostSession)
		p.IExpectedHead = append(p.IExpectedHead, orMinusOne(it.ExpectedHead))
		p.IExpectedEpoch = append(p.IExpectedEpoch, orMinusOne(it.ExpectedEpoch))
		p.ILease = append(p.ILease, it.LeaseToken)
		p.IGate = append(p.IGate, int32(gate))
		p.IBudget = append(p.IBudget, it.Budget)
		p.IOwes = append(p.IOwes, it.Owes)
		p.IEvents = append(p.IEvents, int32(len(it.Events)))
		keyed, large := false, false
		for j := range it.Events {
			e := &it.Events[j]
			keyed = keyed || len(e.Keys) > 0
			large = large || len(e.Body) > largeBody
			p.EItem = append(p.EItem, int32(i+1))
			addEvent(&p, e)
		}
		p.IKeyed = append(p.IKeyed, keyed)
		p.ILarge = append(p.ILarge, large)
	}
	return p
}

// owingAt is the threshold of an item.
func (s *Store) owingAt(it *Item) int64 {
	milli := s.cfg.debtMilliOf(it.Model)
	if it.ScaleMilli > 0 {
		milli = milli * 1000 / int64(it.ScaleMilli)
	}
	return milli
}

// debtMilli is the threshold of a batch: a lane puts no items of different ones
// together.
func (s *Store) debtMilli(items []*Item) int64 {
	for _, it := range items {
		if it.Owes {
			return s.owingAt(it)
		}
	}
	return s.cfg.DebtMilli
}

func addEvent(p *db.AppendEventsParams, e *NewEvent) {
	p.EType = append(p.EType, int16(e.Type))
	p.EHash = append(p.EHash, e.Hash[:])
	p.EBody = append(p.EBody, e.Body)
	var version int16
	if e.Type == events.MessageAppended {
		version = message.ReaderVersion
	}
	p.EVersion = append(p.EVersion, version)
	p.ERole = append(p.ERole, int16(e.Facts.Role))
	p.ETokens = append(p.ETokens, int32(e.Facts.Tokens))
	p.EFlags = append(p.EFlags, int32(e.Facts.Flags)|int32(e.Facts.Dialect)<<dialectShift)
	p.ELinks = append(p.ELinks, message.EncodeLinks(e.Facts))
	var kinds [2]int16
	var keys [2][]byte
	for i, k := range e.Keys {
		kinds[i], keys[i] = int16(k.Kind), k.Value
	}
	p.EKind, p.EKey = append(p.EKind, kinds[0]), append(p.EKey, keys[0])
	p.EKind2, p.EKey2 = append(p.EKind2, kinds[1]), append(p.EKey2, keys[1])
}

func orMinusOne(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// run sends one batch: one statement, one round trip, one transaction.
func run(ctx context.Context, q *db.Queries, p db.AppendEventsParams) ([]outcome, error) {
	r, err := q.AppendEvents(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(r.Verdict) != len(p.IKey) || len(r.Seq) != len(p.EType) || len(r.Known) != len(p.EType) {
		return nil, fmt.Errorf("append: %d outcomes for %d items", len(r.Verdict), len(p.IKey))
	}
	outs := make([]outcome, len(r.Verdict))
	at := 0
	for i := range outs {
		next := at + int(p.IEvents[i])
		outs[i] = outcome{
			verdict: r.Verdict[i], sid: r.SID[i], head: r.Head[i], hostHead: r.HostHead[i], epoch: r.Epoch[i], debt: r.Debt[i],
			// Callers keep their part: none may grow into the next one's.
			seqs: r.Seq[at:next:next], known: r.Known[at:next:next],
		}
		at = next
	}
	return outs, nil
}

// isDataError tells an error that one item's data caused, so that the others
// may succeed without it.
func isDataError(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code[:2] {
	case "21", "22", "23", "54":
		return true
	}
	return false
}

func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) // by what read before, in the same round trip
}
