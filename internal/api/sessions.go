package api

import (
	"time"

	"github.com/engined/engined/internal/store"
)

// SessionRow is a session as listings show it.
type SessionRow struct {
	SessionKey string `json:"sessionKey"`
	Head       int64  `json:"head"`
	// HostHead is the highest seq a host wrote; expectedHead is held against it.
	HostHead int64 `json:"hostHead"`
	Epoch    int64 `json:"epoch"`
	// Tokens is the estimate of the window before any trimming.
	Tokens int64 `json:"tokens"`
	// Debt is what a compaction is owed for, in tokens; 0 when nothing is.
	Debt          int64     `json:"debt"`
	TokenBudget   int64     `json:"tokenBudget"`
	Dialect       string    `json:"dialect"`
	GatewayID     string    `json:"gatewayId,omitempty"`
	HostSessionID string    `json:"hostSessionId,omitempty"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
}

// SessionDetail is one session.
type SessionDetail struct {
	SessionRow
	Compactions int64   `json:"compactions"`
	Lineage     Lineage `json:"lineage"`
	// Attempts are the newest tries at a compaction, newest first.
	Attempts []AttemptRow `json:"attempts"`
}

// AttemptRow is one try at a compaction.
type AttemptRow struct {
	Epoch     int64     `json:"epoch"`
	Worker    string    `json:"worker"`
	Outcome   string    `json:"outcome"`
	Error     string    `json:"error,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
}

// SessionPage is a page of sessions in the order of their keys.
type SessionPage struct {
	Sessions []SessionRow `json:"sessions"`
	// Next is the next page's after; null on the last page.
	Next *string `json:"next"`
}

// shownAttempts is how many attempts a session shows.
const shownAttempts = 10

func sessionOperations() []*operation {
	list := get("/v1/sessions", "listSessions", tagSessions, "List sessions", serveSessions)
	list.answer = of[SessionPage]()
	list.query = []queryParam{
		{name: "after", in: "query", doc: "The last session key of the page before."},
		{name: "keyContains", in: "query", doc: "Only sessions whose key holds this text, in capitals or not."},
		limitParam(),
	}

	one := get(sessionPath, "getSession", tagSessions, "Look at a session", serveSession)
	one.keyed, one.answer, one.refusals = true, of[SessionDetail](), []kind{kindUnknown}
	return []*operation{list, one}
}

func rowOf(s *store.Session) SessionRow {
	return SessionRow{
		SessionKey: s.Key, Head: s.Head, HostHead: s.HostHead, Epoch: s.Epoch, Tokens: s.LiveTokens(),
		TokenBudget: s.TokenBudget, Dialect: dialectName(s.Dialect), GatewayID: s.Gateway, HostSessionID: s.HostSession,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}

func serveSessions(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	limit, err := c.limit(q)
	if err != nil {
		return err
	}
	k := c.check()
	k.key("after", q.Get("after"))
	k.key("keyContains", q.Get("keyContains"))
	if k.err != nil {
		return k.err
	}
	// One more than asked for tells whether there is a next page.
	rows, err := c.api.cfg.Log.Sessions(c.ctx, c.tenant, q.Get("after"), q.Get("keyContains"), limit+1)
	if err != nil {
		return err
	}
	page := SessionPage{Sessions: make([]SessionRow, 0, min(len(rows), limit))}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = &rows[limit-1].Key
	}
	for i := range rows {
		row := rowOf(&rows[i].Session)
		row.Debt = rows[i].DebtTokens
		page.Sessions = append(page.Sessions, row)
	}
	return c.answer(&page)
}

func serveSession(c *call) error {
	log := c.api.cfg.Log
	s, err := log.Session(c.ctx, c.tenant, c.session)
	if err != nil {
		return err
	}
	d := SessionDetail{SessionRow: rowOf(&s), Attempts: []AttemptRow{}}
	debt, owes, err := log.DebtOf(c.ctx, c.tenant, s.SID)
	if err != nil {
		return err
	}
	if owes {
		d.Debt = debt.Tokens
	}
	if d.Compactions, err = log.CompactionCount(c.ctx, c.tenant, s.SID); err != nil {
		return err
	}
	if d.Lineage, err = c.lineage(&s); err != nil {
		return err
	}
	attempts, err := log.Attempts(c.ctx, c.tenant, s.SID, shownAttempts)
	if err != nil {
		return err
	}
	for _, t := range attempts {
		d.Attempts = append(d.Attempts, AttemptRow{
			Epoch: t.Epoch, Worker: t.Worker, Outcome: t.Outcome, Error: t.Err, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
		})
	}
	return c.answer(&d)
}
