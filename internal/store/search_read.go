package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store/db"
)

// filter is a SearchFilter as the queries take it.
type filter struct {
	kinds, roles []int16
	since, until time.Time
	sids         []uuid.UUID
	paths        []string
	// session is a tsquery of the sessions; "" is any.
	session string
	mark    string
}

// manySessions is how many sessions a look-up names one by one.
const manySessions = 64

func filterOf(tenant string, f *SearchFilter) filter {
	out := filter{
		kinds: []int16{}, roles: []int16{}, sids: []uuid.UUID{}, paths: []string{}, mark: tenantMark(tenant),
		since: f.Since, until: f.Until,
	}
	if out.since.IsZero() {
		out.since = time.Unix(0, 0).AddDate(-2000, 0, 0)
	}
	if out.until.IsZero() {
		out.until = time.Unix(0, 0).AddDate(8000, 0, 0)
	}
	for _, k := range f.Kinds {
		out.kinds = append(out.kinds, int16(k))
	}
	for _, r := range f.Roles {
		out.roles = append(out.roles, int16(r))
	}
	var names []string
	for _, s := range f.Sessions {
		out.sids = append(out.sids, s.SID)
		names = append(names, queryOf("", search.Lookup{Term: sessionTerm(out.mark, s.SID)}))
		if len(s.Path) == 0 {
			out.paths = append(out.paths, "{[1,)}")
			continue
		}
		ranges := make([]string, len(s.Path))
		for i, r := range s.Path {
			if ranges[i] = fmt.Sprintf("[%d,%d]", r.From, r.To); r.To == math.MaxInt64 {
				ranges[i] = fmt.Sprintf("[%d,)", r.From)
			}
		}
		out.paths = append(out.paths, "{"+strings.Join(ranges, ",")+"}")
	}
	if len(names) > 0 && len(names) <= manySessions {
		out.session = "(" + strings.Join(names, " | ") + ")"
	}
	return out
}

// all is a tsquery of entries that a part must have.
func (f *filter) all(entries ...string) string {
	if f.session != "" {
		entries = append(entries, f.session)
	}
	return strings.Join(entries, " & ")
}

// entry is the tsquery of a look-up, or of what may stand for one.
func (f *filter) entry(oneOf []search.Lookup) string {
	if len(oneOf) == 1 {
		return queryOf(f.mark, oneOf[0])
	}
	parts := make([]string, len(oneOf))
	for i, l := range oneOf {
		parts[i] = queryOf(f.mark, l)
	}
	return "(" + strings.Join(parts, " | ") + ")"
}

func (f *filter) entries(lookups [][]search.Lookup) []string {
	out := make([]string, len(lookups))
	for i, l := range lookups {
		out[i] = f.entry(l)
	}
	return out
}

// SearchCounts tells in how many parts of the sessions each look-up is,
// counted up to most.
func (s *Store) SearchCounts(ctx context.Context, tenant string, f *SearchFilter, lookups [][]search.Lookup, horizon int64, most int) ([]int64, error) {
	by := filterOf(tenant, f)
	queries := by.entries(lookups)
	for i := range queries {
		queries[i] = by.all(queries[i])
	}
	rows, err := s.unfiltered().SearchCounts(ctx, db.SearchCountsParams{TenantID: tenant, Queries: queries, Horizon: horizon, Most: int32(most)})
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]int64, len(lookups))
	for _, r := range rows {
		out[r.I-1] = r.N
	}
	return out, nil
}

// SearchAll finds messages that have every look-up, best first by a first
// rank; rarest is the look-up to begin with. It considers the newest `most`.
func (s *Store) SearchAll(
	ctx context.Context, tenant string, f *SearchFilter, lookups [][]search.Lookup, rarest int,
	average float64, before SearchMark, most, limit int,
) ([]SearchFound, error) {
	by := filterOf(tenant, f)
	queries := by.entries(lookups)
	spread := ""
	if len(queries) > 1 {
		spread = by.all(queries[rarest], queryOf(by.mark, search.Lookup{Term: markParts}))
	}
	rows, err := s.unfiltered().SearchAll(ctx, db.SearchAllParams{
		Best: mostRank(lookups, before), TenantID: tenant, Query: by.all(slices.Clone(queries)...), Ranked: strings.Join(queries, " | "), Rarest: spread, Queries: queries,
		Average: average, Horizon: before.Horizon, BeforeScore: before.Score, BeforeDoc: before.Doc,
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths, Most: int32(most), MaxRows: int32(limit),
	})
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]SearchFound, len(rows))
	for i, r := range rows {
		out[i] = SearchFound{SID: r.SID, Seq: r.Seq, Doc: r.Doc, Score: r.Score}
	}
	return out, nil
}

// mostRank is the most that ts_rank can come to for one of look-ups each: the
// largest weight by the constant that it divides by. A prefix adds up over words
// without a bound. A later page does not begin with the best, so there is no
// telling what can come on it.
func mostRank(lookups [][]search.Lookup, before SearchMark) float64 {
	if before.Score < math.MaxFloat64 {
		return 0
	}
	for _, l := range lookups {
		if len(l) != 1 || l[0].Prefix {
			return 0
		}
	}
	return 0.833/1.64493406685 + 1e-4
}

// SearchNewest finds messages that have every look-up, newest first.
func (s *Store) SearchNewest(
	ctx context.Context, tenant string, f *SearchFilter, lookups [][]search.Lookup, rarest int, before SearchMark, limit int,
) ([]SearchFound, error) {
	by := filterOf(tenant, f)
	queries := by.entries(lookups)
	rows, err := s.unfiltered().SearchNewest(ctx, db.SearchNewestParams{
		TenantID: tenant, Query: by.all(queries[rarest]), Queries: queries, Horizon: before.Horizon, BeforeDoc: before.Doc,
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]SearchFound, len(rows))
	for i, r := range rows {
		out[i] = SearchFound{SID: r.SID, Seq: r.Seq, Doc: r.Doc}
	}
	return out, nil
}

// SearchAny finds messages that have some of the look-ups, best first by the
// weights of what they have and how rare it is among all parts. Of each look-up
// it considers the newest `most`. counts is in how many parts each look-up is,
// up to most; nil has it counted. counted is the same, nil where nothing is found.
func (s *Store) SearchAny(
	ctx context.Context, tenant string, f *SearchFilter, lookups [][]search.Lookup, weights []float64,
	counts []int64, parts int64, average float64, before SearchMark, most, limit int,
) (found []SearchFound, counted []int64, err error) {
	if counts == nil && f.narrows() {
		if counts, err = s.SearchCounts(ctx, tenant, f, lookups, before.Horizon, most); err != nil {
			return nil, nil, err
		}
	}
	by := filterOf(tenant, f)
	queries := by.entries(lookups)
	for i := range queries {
		queries[i] = by.all(queries[i])
	}
	rows, err := s.unfiltered().SearchAny(ctx, db.SearchAnyParams{
		TenantID: tenant, Queries: queries, Weights: weights, Counts: counts, Parts: float64(parts),
		Average: average, Horizon: before.Horizon, BeforeScore: before.Score, BeforeDoc: before.Doc,
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths, Most: int32(most), MaxRows: int32(limit),
	})
	if err != nil {
		return nil, nil, readErr("search", err)
	}
	found = make([]SearchFound, len(rows))
	for i, r := range rows {
		found[i] = SearchFound{SID: r.SID, Seq: r.Seq, Doc: r.Doc, Score: r.Score}
		counted = r.Counts
	}
	return found, counted, nil
}

// narrows tells whether there are parts of the sessions that the filter leaves
// out, so that what is found is not all there is.
func (f *SearchFilter) narrows() bool {
	for _, s := range f.Sessions {
		if len(s.Path) > 1 || len(s.Path) == 1 && (s.Path[0].From > 1 || s.Path[0].To != events.Open) {
			return true
		}
	}
	return len(f.Sessions) > manySessions || len(f.Kinds)+len(f.Roles) > 0 || f.Tool != "" || f.Epoch != 0 || f.Without != 0 ||
		!f.Since.IsZero() || !f.Until.IsZero()
}

// SearchTexts reads the parts of messages that have one of the look-ups (none:
// all parts), in the order of the messages, until maxBytes are reached.
func (s *Store) SearchTexts(
	ctx context.Context, tenant string, f *SearchFilter, found []SearchFound, lookups [][]search.Lookup, partsEach int, maxBytes int64,
) ([]SearchPart, error) {
	by := filterOf(tenant, f)
	p := db.SearchTextsParams{
		TenantID: tenant, Query: strings.Join(by.entries(lookups), " | "), PartsEach: int32(partsEach), MaxBytes: maxBytes,
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths,
		WantSids: make([]uuid.UUID, len(found)), WantSeqs: make([]int64, len(found)),
	}
	for i := range found {
		p.WantSids[i], p.WantSeqs[i] = found[i].SID, found[i].Seq
	}
	rows, err := s.of(tenant).SearchTexts(ctx, p)
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]SearchPart, len(rows))
	for i, r := range rows {
		out[i] = SearchPart{
			SID: r.SID, SessionKey: r.SessionKey, Seq: r.Seq, Part: r.Part, Doc: r.Doc, Kind: SearchKind(r.Kind),
			Role: message.Role(r.Role), Flags: message.Flags(r.Flags), Epoch: r.Epoch, Tokens: int(r.Tokens), Length: int(r.Length),
			Tool: r.Tool, Speaker: r.Speaker, At: r.At, Text: r.Body,
		}
	}
	return out, nil
}

// SearchScanned is a part that an expression may be held against.
type SearchScanned struct {
	SearchPart
	// Fits is false for what the filter leaves out; its text is empty then.
	Fits bool
}

// SearchScan reads parts, newest first, before a mark. filler is a text that
// they must hold, "" any.
func (s *Store) SearchScan(ctx context.Context, tenant string, f *SearchFilter, filler string, before SearchMark, limit int) ([]SearchScanned, error) {
	by := filterOf(tenant, f)
	p := db.SearchScanParams{
		TenantID: tenant, Filler: filler, Horizon: before.Horizon, BeforeDoc: before.Doc,
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths, MaxRows: int32(limit),
	}
	var rows []db.SearchScanRow
	var err error
	if len(f.Sessions) == 0 {
		rows, err = s.unfiltered().SearchScan(ctx, p)
	} else {
		var of []db.SearchScanSessionsRow
		of, err = s.unfiltered().SearchScanSessions(ctx, db.SearchScanSessionsParams(p))
		rows = make([]db.SearchScanRow, len(of))
		for i := range of {
			rows[i] = db.SearchScanRow(of[i])
		}
	}
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]SearchScanned, len(rows))
	for i, r := range rows {
		out[i] = SearchScanned{Fits: r.Fits, SearchPart: SearchPart{
			SID: r.SID, SessionKey: r.SessionKey, Seq: r.Seq, Part: r.Part, Doc: r.Doc, Kind: SearchKind(r.Kind),
			Role: message.Role(r.Role), Flags: message.Flags(r.Flags), Epoch: r.Epoch, Tokens: int(r.Tokens), Length: int(r.Length),
			Tool: r.Tool, Speaker: r.Speaker, At: r.At, Text: r.Body,
		}}
	}
	return out, nil
}

// SearchNeighbour is the message at a place around another one: -1 before it, 1
// and 2 behind it.
type SearchNeighbour struct {
	// Of is the index of the other one.
	Of    int
	Place int
	Seq   int64
	// Doc is of the first of its parts that is asked for.
	Doc int64
}

// SearchNeighbours reads who stands around messages in their sessions. What the
// filter leaves out stands nowhere.
func (s *Store) SearchNeighbours(ctx context.Context, tenant string, f *SearchFilter, found []SearchFound) ([]SearchNeighbour, error) {
	by := filterOf(tenant, f)
	p := db.SearchNeighboursParams{
		TenantID: tenant, WantSids: make([]uuid.UUID, len(found)), WantSeqs: make([]int64, len(found)),
		Kinds: by.kinds, Roles: by.roles, Tool: f.Tool, Epoch: f.Epoch, Since: by.since, Until: by.until,
		Hidden: int32(f.Without), Sids: by.sids, Paths: by.paths,
	}
	for i := range found {
		p.WantSids[i], p.WantSeqs[i] = found[i].SID, found[i].Seq
	}
	rows, err := s.of(tenant).SearchNeighbours(ctx, p)
	if err != nil {
		return nil, readErr("search", err)
	}
	out := make([]SearchNeighbour, len(rows))
	for i, r := range rows {
		out[i] = SearchNeighbour{Of: int(r.I) - 1, Place: int(r.Place), Seq: r.Seq, Doc: r.Doc}
	}
	return out, nil
}
