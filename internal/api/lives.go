package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// maxLease is the longest that a lease lasts without renewal.
const maxLease = 24 * time.Hour

// LeaseRequest asks for the session's lease.
type LeaseRequest struct {
	contextengine.Session
	// Owner names the holder: the same owner renews, another one waits.
	Owner string `json:"owner"`
	// TTLMs is how many milliseconds the lease lasts unless it is renewed.
	TTLMs *int64 `json:"ttlMs" nullable:"false"`
}

// LeaseAnswer is a lease. Token is a fencing token.
type LeaseAnswer struct {
	Token     string    `json:"token"`
	Owner     string    `json:"owner"`
	ExpiresAt time.Time `json:"expiresAt"`
	Renewed   bool      `json:"renewed"`
	Head      int64     `json:"head"`
	Epoch     int64     `json:"epoch"`
}

// LeaseEnd tells that a lease was given back.
type LeaseEnd struct {
	Released bool `json:"released"`
}

// Receipt says what an erasure took away.
type Receipt struct {
	// Erased is how many sessions are gone.
	Erased int `json:"erased"`
	// ErasedAt is when the last of them was hidden; null where there was none.
	ErasedAt *time.Time `json:"erasedAt"`
	// Counts are rows by table.
	Counts map[string]int64 `json:"counts"`
	// Complete is false when hidden rows are left for a worker to delete.
	Complete bool `json:"complete"`
}

func lifeOperations() []*operation {
	take := post("/lease", "takeLease", tagSessions, "Take or renew a session's lease", serveTakeLease)
	take.description = "One owner at a time. `token` is a fencing token: 16 decimal digits that grow with every change of hands; writes may carry it as " +
		"`leaseToken`. The same owner renews and keeps the token while the lease lasts; once it is over, whoever asks first gets a new, higher one. " +
		"Only the database's clock counts. A write without a token is never refused because of a lease. Opens the session where it is missing."
	take.request, take.answer, take.refusals = of[LeaseRequest](), of[LeaseAnswer](), []kind{kindLeaseHeld, kindErased}

	end := get(sessionPath+"/lease", "releaseLease", tagSessions, "Give a lease back", serveEndLease)
	end.method, end.keyed, end.answer, end.refusals = http.MethodDelete, true, of[LeaseEnd](), []kind{kindUnknown, kindLease}
	end.query = []queryParam{{name: "token", in: "query", doc: "The lease's token; required."}}

	erase := get(sessionPath, "eraseSession", tagSessions, "Erase a session", serveErase)
	erase.method, erase.keyed, erase.answer, erase.refusals = http.MethodDelete, true, of[Receipt](), []kind{kindUnknown}
	erase.description = "The session is gone at once and for good: reads answer as for an unknown key, late writes 409 `session-erased`, work under way is " +
		"refused. Its rows are deleted before the answer; of a very large session the rest goes in the background and `complete` is false. A tombstone stays " +
		"that holds hashes of the key and of its host session ids. A write with a `sessionId` never seen under the key opens a new session there at seq 1."

	many := get("/v1/sessions", "eraseSessions", tagSessions, "Erase all sessions whose keys begin with a prefix", serveEraseMany)
	many.method, many.answer = http.MethodDelete, of[Receipt]()
	many.description = "For everything of a subject, where keys begin with what names it (`agent:main:whatsapp:+15550100`). Keys are compared byte for byte. " +
		"First all are hidden, then their rows go. No session with the prefix is no error: `erased` is 0. Safe to repeat."
	many.query = []queryParam{{name: "keyPrefix", in: "query", doc: "What the keys begin with; required, so that nothing is erased by leaving it out."}}
	return []*operation{take, end, erase, many}
}

func serveTakeLease(c *call) error {
	var p LeaseRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.required("owner", p.Owner)
	switch most := maxLease.Milliseconds(); {
	case p.TTLMs == nil:
		k.fail("ttlMs", "is required")
	case *p.TTLMs < 1 || *p.TTLMs > most:
		k.fail("ttlMs", fmt.Sprintf("must be from 1 to %d", most))
	}
	if k.err != nil {
		return k.err
	}
	l, err := c.api.cfg.Lives.TakeLease(c.ctx, store.LeaseRequest{
		Tenant: c.tenant, SessionKey: c.session, Gateway: p.GatewayID, HostSession: p.SessionID,
		Owner: p.Owner, TTL: time.Duration(*p.TTLMs) * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return c.answer(&LeaseAnswer{
		Token: l.Token, Owner: p.Owner, ExpiresAt: l.ExpiresAt.UTC(), Renewed: l.Renewed, Head: l.Head, Epoch: l.Epoch,
	})
}

func serveEndLease(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	k := c.check()
	k.required("token", q.Get("token"))
	if k.err != nil {
		return k.err
	}
	if err := c.api.cfg.Lives.EndLease(c.ctx, c.tenant, c.session, q.Get("token")); err != nil {
		return err
	}
	return c.answer(&LeaseEnd{Released: true})
}

func serveErase(c *call) error {
	// The rows may take most of the call's time and no more: what is left is
	// answered for, and deleted by a worker.
	ctx, cancel := c.most()
	defer cancel()
	e, err := c.api.cfg.Lives.Erase(ctx, c.tenant, c.session)
	if err != nil {
		return err
	}
	return c.answer(receiptOf([]store.Erasure{e}))
}

func serveEraseMany(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	k := c.check()
	k.required("keyPrefix", q.Get("keyPrefix"))
	if k.err != nil {
		return k.err
	}
	ctx, cancel := c.most()
	defer cancel()
	es, err := c.api.cfg.Lives.EraseMany(ctx, c.tenant, q.Get("keyPrefix"))
	if err != nil && (len(es) == 0 || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	r := receiptOf(es)
	r.Complete = r.Complete && err == nil // some are not even hidden yet
	return c.answer(r)
}

// most is a context that ends a while before the call's.
func (c *call) most() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, c.api.timeout(c.op)*4/5)
}

func receiptOf(es []store.Erasure) *Receipt {
	r := &Receipt{Erased: len(es), Counts: map[string]int64{}, Complete: true}
	for i := range es {
		r.Complete = r.Complete && es[i].Complete
		if at := es[i].ErasedAt.UTC(); r.ErasedAt == nil || at.After(*r.ErasedAt) {
			r.ErasedAt = &at
		}
		for table, n := range es[i].Counts {
			r.Counts[table] += n
		}
	}
	return r
}

// noLives serves nothing.
type noLives struct{}

var errNoLives = kindNotFound.problem("this node serves no leases and erases nothing")

func (noLives) TakeLease(context.Context, store.LeaseRequest) (store.Lease, error) {
	return store.Lease{}, errNoLives
}

func (noLives) HoldsLease(context.Context, string, string, string) error { return errNoLives }

func (noLives) EndLease(context.Context, string, string, string) error { return errNoLives }

func (noLives) Erase(context.Context, string, string) (store.Erasure, error) {
	return store.Erasure{}, errNoLives
}

func (noLives) EraseMany(context.Context, string, string) ([]store.Erasure, error) {
	return nil, errNoLives
}
