package contextengine

import (
	"errors"
	"fmt"
)

// ErrUnknownSession: no session lives under that key in that tenant.
var ErrUnknownSession = errors.New("unknown session")

// ErrSessionErased: the session was erased; a late write cannot bring it back.
var ErrSessionErased = errors.New("session erased")

// ErrNothingToUndo: no compaction stands between the session and its first epoch.
var ErrNothingToUndo = errors.New("nothing to undo")

// ErrSessionExists: a fork or a sub-agent would begin under a key that has a
// session already.
var ErrSessionExists = errors.New("session exists")

// ErrSubagentBegan: the child has written, or others were forked from it, so its
// preparation can't be rolled back any more.
var ErrSubagentBegan = errors.New("sub-agent has begun")

// StaleHeadError refuses a write whose ExpectedHead is not the session's.
type StaleHeadError struct{ Expected, Head int64 }

func (e *StaleHeadError) Error() string {
	return fmt.Sprintf("stale head: expected %d, the session is at %d", e.Expected, e.Head)
}

// EpochConflictError refuses work that was planned in another epoch.
type EpochConflictError struct{ Expected, Epoch int64 }

func (e *EpochConflictError) Error() string {
	return fmt.Sprintf("epoch conflict: expected %d, the session is at %d", e.Expected, e.Epoch)
}

// IdempotencyConflictError refuses a known key that comes with another payload.
// Seq is the event that has the key; 0 where both are of one batch.
type IdempotencyConflictError struct {
	Key string
	Seq int64
}

func (e *IdempotencyConflictError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("idempotency conflict: key %q already names another payload", e.Key)
	}
	return fmt.Sprintf("idempotency conflict: key %q already names another payload (seq %d)", e.Key, e.Seq)
}

// InvalidError refuses input that breaks the contract. Field names what to
// change, in the request's own words; Limit is set where a limit was passed.
type InvalidError struct {
	Field  string
	Reason string
	Limit  int64
	// TooLarge tells a size over a limit from a shape that can't be accepted.
	TooLarge bool
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// EngineFailedError says that an engine broke the contract during a call: it
// panicked, answered with an error that is nobody else's fault or with a
// result that cannot be, or did not answer in time. A host meets it only from
// the calls that the default engine must not answer in another's place
// (Compact and PrepareSubagentSpawn), or where that one failed too.
type EngineFailedError struct {
	EngineID  string
	Operation string
	Err       error
}

func (e *EngineFailedError) Error() string {
	return fmt.Sprintf("context engine %q failed during %s: %v", e.EngineID, e.Operation, e.Err)
}

func (e *EngineFailedError) Unwrap() error { return e.Err }
