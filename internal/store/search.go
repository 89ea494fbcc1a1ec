package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store/db"
)

// SearchKind is what a searched text is. The numbers are stored.
type SearchKind int16

// The kinds.
const (
	SearchMessage SearchKind = 1
	SearchResult  SearchKind = 2
	SearchCall    SearchKind = 3
	SearchSummary SearchKind = 4
)

// SearchPart is a searched text, or a part of a long one.
type SearchPart struct {
	SID        uuid.UUID
	SessionKey string // set when read
	Seq        int64
	Part       int32
	// Doc grows in the order of the tenant's feed; set when read.
	Doc     int64
	Kind    SearchKind
	Role    message.Role
	Flags   message.Flags
	Epoch   int64
	Tokens  int
	Length  int
	Tool    string
	Speaker string
	At      time.Time
	Text    string
}

// SearchScope is what of a session is looked at.
type SearchScope struct {
	SID uuid.UUID
	// Path is ranges of seqs; none is the whole log of the session.
	Path []events.Range
}

// SearchFilter narrows a search; its zero value does not.
type SearchFilter struct {
	Sessions []SearchScope
	Kinds    []SearchKind
	Roles    []message.Role
	Tool     string
	Epoch    int64
	// Since is included, Until is not.
	Since, Until time.Time
	// Without leaves out messages that have one of these flags.
	Without message.Flags
}

// SearchMark is a place in a search's order, and the newest document that
// the search's first page saw.
type SearchMark struct {
	Score   float64
	Doc     int64
	Horizon int64
}

// SearchFound is a message that may be a hit.
type SearchFound struct {
	SID   uuid.UUID
	Seq   int64
	Doc   int64
	Score float64
}

// SearchIndexState tells how far the index is.
type SearchIndexState struct {
	// Doc is the newest document, Parts and Length the sums of the sessions
	// asked for.
	Doc           int64
	Parts, Length int64
	// Seq is how far the last of the sessions asked for is.
	Seq int64
	// IndexedAt is when the index last moved; zero when it never did.
	IndexedAt time.Time
	// Behind: the log has events that are not indexed yet.
	Behind bool
	// Ready: the feed shows some of them. It does not while an older transaction
	// anywhere in the database runs.
	Ready bool
	// Sealed: some of the sessions asked for are encrypted, and never in it. Only
	// told where the store has keys.
	Sealed bool
}

// SearchState reads how far a tenant's index is.
func (s *Store) SearchState(ctx context.Context, tenant string, sids []uuid.UUID) (SearchIndexState, error) {
	if sids == nil {
		sids = []uuid.UUID{}
	}
	r, err := s.of(tenant).SearchState(ctx, db.SearchStateParams{TenantID: tenant, Sids: sids})
	if err != nil {
		return SearchIndexState{}, readErr("search", err)
	}
	out := SearchIndexState{Doc: r.Doc, Parts: r.Parts, Length: r.Length, Seq: r.Seq, Behind: r.Ahead > 0, Ready: r.Ahead > 1}
	if r.IndexedAt.Unix() > 0 {
		out.IndexedAt = r.IndexedAt
	}
	if s.cfg.Vault != nil {
		out.Sealed, err = s.of(tenant).SealedAmong(ctx, db.SealedAmongParams{TenantID: tenant, Sids: sids})
		if err != nil {
			return SearchIndexState{}, readErr("search", err)
		}
	}
	return out, nil
}

// SearchPaths reads the present state of sessions, which tells their paths.
func (s *Store) SearchPaths(ctx context.Context, tenant string, sids []uuid.UUID) (map[uuid.UUID]events.State, error) {
	rows, err := s.of(tenant).SearchPaths(ctx, db.SearchPathsParams{TenantID: tenant, Sids: sids})
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make(map[uuid.UUID]events.State, len(rows))
	for _, r := range rows {
		state, err := events.DecodeState(r.State)
		if err != nil {
			return nil, err
		}
		out[r.SID] = state
	}
	return out, nil
}

// The index is one for all tenants. Every entry starts with a mark of its
// tenant, so a look-up reads nothing of another one's, not even the time it
// takes. Behind the mark, control characters set apart what is no text.
const (
	markSession = "\x01"
	markParts   = "\x02"
)

func tenantMark(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return base64.RawStdEncoding.EncodeToString(sum[:3])
}

func sessionTerm(mark string, sid uuid.UUID) string {
	return mark + markSession + base64.RawStdEncoding.EncodeToString(sid[:])
}

var quoteTerm = strings.NewReplacer(`\`, `\\`, `'`, `''`)

// vectorOf writes a tsvector. The weights tell of counts.
func vectorOf(mark string, terms []search.Term, more ...string) string {
	var b strings.Builder
	b.Grow(16 * len(terms))
	for _, t := range more {
		fmt.Fprintf(&b, "'%s' ", quoteTerm.Replace(t))
	}
	for _, t := range terms {
		b.WriteByte('\'')
		b.WriteString(mark)
		_, _ = quoteTerm.WriteString(&b, t.Text) // a Builder takes everything
		b.WriteByte('\'')
		switch {
		case t.Count >= 5:
			b.WriteString(":1A")
		case t.Count >= 3:
			b.WriteString(":1B")
		case t.Count == 2:
			b.WriteString(":1C")
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// queryOf writes one entry of a tsquery.
func queryOf(mark string, l search.Lookup) string {
	q := "'" + quoteTerm.Replace(mark+l.Term) + "'"
	if l.Prefix {
		q += ":*"
	}
	return q
}
