package window

import "github.com/engined/engined/internal/message"

// retireHeartbeats leaves out the heartbeat messages of each turn without tool
// calls, once the next turn has begun. A turn runs from one user message to
// the next; whatever made calls did real work and stays.
func (l *layout) retireHeartbeats() {
	from := 0
	worked, flagged, whole := false, false, false
	for i := range l.in.Entries {
		e := &l.in.Entries[i]
		if e.Flags.Has(message.Hidden) {
			continue
		}
		if e.Role == message.User {
			if flagged && !worked {
				l.retire(from, i)
				l.unsettled = l.unsettled || (l.in.Older && !whole)
			}
			from, worked, flagged, whole = i, false, false, true
		}
		worked = worked || len(e.Calls) > 0
		flagged = flagged || e.Flags.Has(message.Heartbeat)
	}
}

// retire leaves out the heartbeat messages in entries[from:to]; the message at
// to began the next turn.
func (l *layout) retire(from, to int) {
	for i := from; i < to; i++ {
		e := &l.in.Entries[i]
		if l.why[i] == none && e.Role != message.Result && e.Flags.Has(message.Heartbeat) {
			l.why[i], l.at[i] = HeartbeatDone, l.in.Entries[to].Seq
		}
	}
}
