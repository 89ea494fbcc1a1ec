package replay

import "encoding/json"

// Kind is what a step of a recording does.
type Kind int

// The kinds of steps.
const (
	// Message appends one message.
	Message Kind = iota
	// TurnEnd ends a turn: what it owes is paid before the next step.
	TurnEnd
	// Reset hides everything before the step's Target, or everything.
	Reset
	// Rewind moves the leaf back to the newest message at or before Target.
	Rewind
)

// Step is one event of the recorded session.
type Step struct {
	Kind Kind
	// Seq is the event's in the recording.
	Seq int64
	// Message, Heartbeat and Reply are of a Message. Reply is set where a model
	// wrote it: it is asked for its window before.
	Message   json.RawMessage
	Heartbeat bool
	Reply     bool
	// Target is a seq of the recording; 0 for none.
	Target int64
}

// WithTurns adds the ends of turns to a recording that has none: a turn ends
// before each user message that follows something else.
func WithTurns(steps []Step, user func(Step) bool) []Step {
	for _, s := range steps {
		if s.Kind == TurnEnd {
			return steps
		}
	}
	var out []Step
	inUser := true
	for _, s := range steps {
		asks := s.Kind == Message && user(s)
		if asks && !inUser {
			out = append(out, Step{Kind: TurnEnd, Seq: s.Seq})
		}
		inUser = asks
		out = append(out, s)
	}
	if len(out) > 0 {
		out = append(out, Step{Kind: TurnEnd, Seq: out[len(out)-1].Seq})
	}
	return out
}
