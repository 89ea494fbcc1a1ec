package api

import (
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/audit"
)

// Limiter holds tenants to what they may use; see access.Limiter.
type Limiter interface {
	Enter(tenant string, stream bool) (leave func(), err error)
	Grow(tenant string, exists func() (bool, error)) error
}

// enter takes a place among the calls that this node answers at one time: with
// more, all of them would only wait longer. Streams wait for news and have a
// limit of their own, what watches the node has none.
func (c *call) enter() (leave func(), err error) {
	if c.op.public || c.op.kind == stream || c.api.places == nil {
		return func() {}, nil
	}
	select {
	case c.api.places <- struct{}{}:
		return func() { <-c.api.places }, nil
	default:
		p := kindBusy.problem("this node answers as many calls as it may at one time").retry(1)
		p.Limit = int64(cap(c.api.places))
		return nil, p
	}
}

// charge has the call count against its tenant's limits.
func (c *call) charge() (leave func(), err error) {
	if c.op.public || c.api.cfg.Limiter == nil {
		return func() {}, nil
	}
	if leave, err = c.api.cfg.Limiter.Enter(c.tenant, c.op.kind == stream); err != nil {
		return nil, limitProblem(err)
	}
	if how := grows()[c.op.id]; how != 0 {
		err = c.api.cfg.Limiter.Grow(c.tenant, func() (bool, error) {
			if how == opens {
				return false, nil
			}
			_, err := c.api.cfg.Log.Session(c.ctx, c.tenant, c.session)
			if errors.Is(err, contextengine.ErrUnknownSession) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			leave()
			return nil, limitProblem(err)
		}
	}
	return leave, nil
}

func limitProblem(err error) error {
	e, ok := errors.AsType[*access.LimitError](err)
	if !ok {
		return err
	}
	k := kindTenantLimit
	if e.Wait > 0 {
		k = kindRate
	}
	p := k.problem(e.Error()).retry(int(math.Ceil(e.Wait.Seconds()))) // 0 seconds is no header
	p.Limit = int64(math.Ceil(e.Limit))
	return p
}

// note tells the audit log of the call, once.
func (c *call) note(status int) {
	if c.noted || c.op.public || c.tenant == "" || c.api.cfg.Audit == nil {
		return
	}
	c.noted = true
	session := c.session
	if session == "" && c.op.keyed { // refused before it was looked at
		if key := pathKey(c.r); len(key) <= c.api.cfg.Limits.KeyBytes {
			session = key
		}
	}
	c.api.cfg.Audit(audit.Entry{
		Tenant: c.tenant, At: time.Now(), Key: c.who.Key, Request: c.id, Method: c.r.Method, Route: c.op.path, Session: session, Status: status,
	})
}

// strict tells browsers to come back by TLS alone.
func strict(h http.Header, r *http.Request) {
	if r.TLS != nil {
		h["Strict-Transport-Security"] = hsts
	}
}

var hsts = []string{"max-age=31536000"}
