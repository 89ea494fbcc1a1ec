package window

import (
	"slices"

	"github.com/engined/engined/internal/message"
)

// OpenGroup tells, of the newest messages of a path in log order, which are not
// to be handed to somebody who can't answer for them: the open call with what
// was logged for and behind it, but for results of other calls. kept are those.
// call is the seq of the message that calls, 0 where no call is open. enough is
// false where the answer may lie before what was given.
func OpenGroup(entries []Entry) (call int64, kept []Entry, enough bool) {
	l := arrange(Input{Entries: entries, Older: true})
	for i := range l.groups {
		g := &l.groups[i]
		if !g.live() {
			continue
		}
		own := entries[g.head].Calls
		for j := int(g.head) + 1; j < len(entries); j++ {
			if e := &entries[j]; e.Role == message.Result && !slices.ContainsFunc(e.Results, func(id string) bool { return slices.Contains(own, id) }) {
				kept = append(kept, *e)
			}
		}
		return entries[g.head].Seq, kept, true
	}
	for i := range entries {
		e := &entries[i]
		if e.Flags.Has(message.Hidden) {
			continue
		}
		if e.Role == message.User || e.Role == message.Assistant {
			return 0, nil, true
		}
	}
	return 0, nil, false
}
