package events

import (
	"time"

	"github.com/engined/engined/internal/message"
)

// Type names what happened. The numbers are stored; never renumber them.
type Type int16

// The event types. MessageAppended alone carries a host's bytes; the body of
// every other type is the JSON of its payload struct.
const (
	MessageAppended   Type = 1
	TurnCommitted     Type = 2
	TurnCompleted     Type = 3
	HostSessionBound  Type = 4
	IdentityLinked    Type = 5
	LeafMoved         Type = 6
	SessionReset      Type = 7
	SummaryCreated    Type = 8
	EpochRotated      Type = 9
	MessageSuperseded Type = 10
	Forked            Type = 11
	SubagentPrepared  Type = 12
	SubagentEnded     Type = 13
	AncestorErased    Type = 14
)

var typeNames = map[Type]string{
	MessageAppended:   "message.appended",
	TurnCommitted:     "turn.committed",
	TurnCompleted:     "turn.completed",
	HostSessionBound:  "host_session.bound",
	IdentityLinked:    "identity.linked",
	LeafMoved:         "leaf.moved",
	SessionReset:      "session.reset",
	SummaryCreated:    "summary.created",
	EpochRotated:      "epoch.rotated",
	MessageSuperseded: "message.superseded",
	Forked:            "forked",
	SubagentPrepared:  "subagent.prepared",
	SubagentEnded:     "subagent.ended",
	AncestorErased:    "ancestor.erased",
}

// String is the type's name on the wire.
func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return "unknown"
}

// TypeNamed is the type of a name on the wire.
func TypeNamed(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// Event is one row of the log.
type Event struct {
	Seq           int64
	Type          Type
	ParentSeq     int64
	Epoch         int64
	Gateway       string
	HostSessionID string
	Body          []byte
	RecordedAt    time.Time
	// ReaderVersion and Facts are set for MessageAppended.
	ReaderVersion int16
	Facts         message.Facts
	// Offset is the running total of Facts.Tokens along the event's path, its
	// own included.
	Offset int64
}
