package vault

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// ErrKeyGone: the session's key was destroyed, as by an erasure. What is left of
// the session, in a backup or a restored row, can't be read by anybody.
var ErrKeyGone = errors.New("the session's key was destroyed")

// ErrClosed: the session is encrypted and this process has no master key.
var ErrClosed = errors.New("the session is encrypted, and this process has no encryption key")

// ErrMaster: the session's key is wrapped by a master key that this process does
// not have, or has another one under its id.
var ErrMaster = errors.New("the session's key is wrapped by a master key that this process does not have")

// ErrUnavailable: the key store does not answer.
var ErrUnavailable = errors.New("the key store does not answer")

// CorruptError says that something encrypted is not what was written there.
type CorruptError struct {
	SID  uuid.UUID
	Kind Kind
	// Seq is the event's; 0 for what is no event.
	Seq int64
}

func (e *CorruptError) Error() string {
	if e.Seq > 0 {
		return fmt.Sprintf("session %s: the encrypted body of event %d is damaged", e.SID, e.Seq)
	}
	return fmt.Sprintf("session %s: an encrypted %s is damaged", e.SID, e.Kind)
}
