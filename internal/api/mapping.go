package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

// problemOf says in the API's words what went wrong. An error that nobody
// foresaw is internal: its text stays in the log.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if p := refusal(err); p != nil {
		return p
	}
	if p := locked(err); p != nil {
		return p
	}
	switch {
	case errors.Is(err, ErrUnauthorized):
		return kindUnauthorized.problem(unauthorized(err))
	case errors.Is(err, ErrForbidden):
		return kindForbidden.problem(ErrForbidden.Error())
	case errors.Is(err, contextengine.ErrUnknownSession):
		return kindUnknown.problem("no session has this key")
	case errors.Is(err, contextengine.ErrSessionErased):
		return kindErased.problem("the session was erased; only a new host session id opens it again")
	case errors.Is(err, contextengine.ErrSessionExists):
		return kindExists.problem("a session has this key already")
	case errors.Is(err, contextengine.ErrSubagentBegan):
		return kindBegan.problem("the sub-agent has written, or others were forked from it; it is not rolled back")
	case errors.Is(err, contextengine.ErrNothingToUndo):
		return kindNothingToUndo.problem("the session has no compaction that could be undone")
	case errors.Is(err, store.ErrLeaseStale):
		return kindLease.problem("the lease token is wrong or expired").field("leaseToken")
	case errors.Is(err, store.ErrFeedEra):
		return kindFeedEra.problem("the feed began anew, since the database was restored or moved: start again without a cursor; events keep their sessions and seqs").field("after")
	case errors.Is(err, store.ErrFeedClosed):
		return kindFeedClosed.problem("the database was restored into another cluster or moved to one; engined doctor --fix opens the feed again").retry(30)
	case errors.Is(err, store.ErrUnavailable):
		return kindUnavailable.problem("the database does not answer; a write with an idempotency key can be repeated safely").retry(2)
	case errors.Is(err, store.ErrTooBusy):
		return kindBusy.problem("more writes wait than this node holds").retry(1)
	case errors.Is(err, retrieval.ErrBusy):
		return kindBusy.problem("this node runs as many searches as it may at one time").retry(1)
	case errors.Is(err, context.DeadlineExceeded):
		return kindDeadline.problem("the call's deadline passed; a write with an idempotency key can be repeated safely")
	case errors.Is(err, context.Canceled):
		// Not the client's doing (that is seen before): the node is going down.
		return kindUnavailable.problem("the node is stopping").retry(1)
	}
	if failed, ok := errors.AsType[*contextengine.EngineFailedError](err); ok {
		// What the engine said stays in the log: it may be of somebody else's session.
		return kindEngineFailed.problem(fmt.Sprintf("the engine %s failed during %s; the default engine serves further calls", failed.EngineID, failed.Operation))
	}
	return kindInternal.problem("the error is in the node's log under this request's id")
}

// locked says why something encrypted can't be read or written; nil for any
// other error.
func locked(err error) *Problem {
	if damaged, ok := errors.AsType[*vault.CorruptError](err); ok {
		p := kindDamaged.problem(damaged.Error() + "; a backup may have it")
		p.Seq = damaged.Seq
		return p
	}
	switch {
	case errors.Is(err, vault.ErrKeyGone):
		return kindKeyGone.problem("the session's key was destroyed, as an erasure does; nobody can read what is left of it")
	case errors.Is(err, vault.ErrClosed):
		return kindEncryption.problem("the session is encrypted and this node has no encryption keys; set encryption-key-file").retry(30)
	case errors.Is(err, vault.ErrMaster):
		return kindEncryption.problem("the session's key is wrapped by a master key that is not in this node's encryption-key-file").retry(30)
	case errors.Is(err, vault.ErrUnavailable):
		return kindEncryption.problem("the database of the session keys does not answer; a write with an idempotency key can be repeated safely").retry(2)
	}
	return nil
}

// unauthorized says why, where the caller may know.
func unauthorized(err error) string {
	for _, known := range []error{access.ErrExpired, access.ErrRevoked} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return ErrUnauthorized.Error()
}

// refusal maps the typed errors of the contract; nil for any other.
func refusal(err error) *Problem {
	var (
		invalid  *contextengine.InvalidError
		unfit    *message.InvalidError
		stale    *contextengine.StaleHeadError
		epoch    *contextengine.EpochConflictError
		conflict *contextengine.IdempotencyConflictError
		held     *store.LeaseHeldError
	)
	switch {
	case errors.As(err, &invalid):
		// The reason of a message says so itself; the field says which.
		detail := invalid.Field + ": " + strings.TrimPrefix(invalid.Reason, "message: ")
		return invalidProblem(detail, invalid.Field, invalid.Limit, invalid.TooLarge)
	case errors.As(err, &unfit):
		return invalidProblem(unfit.Error(), "message", unfit.Limit, unfit.TooLarge)
	case errors.As(err, &stale):
		p := kindStaleHead.problem(stale.Error()).field("expectedHead")
		p.Head = &stale.Head
		return p
	case errors.As(err, &epoch):
		p := kindEpoch.problem(epoch.Error()).field("expectedEpoch")
		p.Epoch = &epoch.Epoch
		return p
	case errors.As(err, &held):
		p := kindLeaseHeld.problem(held.Error()).retry(int(math.Ceil(max(held.Left.Seconds(), 1))))
		p.ExpiresAt = &held.ExpiresAt
		return p
	case errors.As(err, &conflict):
		p := kindIdempotency.problem(conflict.Error())
		p.Seq = conflict.Seq
		return p
	}
	return nil
}

func invalidProblem(detail, field string, limit int64, tooLarge bool) *Problem {
	k := kindValidation
	if tooLarge {
		k = kindTooLarge
	}
	p := k.problem(detail).field(field)
	p.Limit = limit
	return p
}
