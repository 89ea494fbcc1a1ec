package compact

import "github.com/engined/engined/internal/message"

// unit is what no cut divides: a tool group, or a message that is in none.
type unit struct {
	// entries are indexes of PlanInput.Entries, ascending.
	entries []int
	// shown is what the unit takes in the window, calibrated and with large
	// results cut; 0 for what the window leaves out: hidden rows, dead calls,
	// orphan results, spent heartbeats.
	shown int
	// weight is its part of a chunk, uncalibrated. It depends on nothing but the
	// messages, so that chunks keep their edges when budgets change.
	weight int
	// user tells that it holds the text of a user.
	user bool
	// keep forbids covering it.
	keep bool
}

// slot is one tool call and the entry that answers it, -1 while none does.
type slot struct {
	id     string
	result int
}

type group struct {
	unit  int
	slots []slot
}

// answer gives the result to the first unanswered call of that id, else to the
// last one: of several results for one call the last is shown.
func (g *group) answer(id string, entry int) {
	last := -1
	for i := range g.slots {
		if g.slots[i].id != id {
			continue
		}
		last = i
		if g.slots[i].result < 0 {
			break
		}
	}
	if last >= 0 {
		g.slots[last].result = entry
	}
}

func (g *group) complete() bool {
	for _, s := range g.slots {
		if s.result < 0 {
			return false
		}
	}
	return true
}

func isUser(e *Entry) bool {
	return !e.Flags.Has(message.Hidden) && (e.Role == message.User || e.Role == message.Result && e.Flags.Has(message.UserText))
}

func isAssistant(e *Entry) bool {
	return !e.Flags.Has(message.Hidden) && e.Role == message.Assistant
}

// unitsOf cuts the path into units and marks what must stay: the newest user
// message, the newest unit shown, live calls, and results that no assistant
// message has followed yet.
//
// It holds to the rules by which windows are built: a result answers the most
// recent call of its id, a call that something follows before its last result
// is dead and left out.
func unitsOf(entries []Entry, m measure) []unit {
	lastUser, lastAssistant := newest(entries)
	lastSpeech := -1
	units := make([]unit, 0, len(entries))
	var groups []*group
	// latest is by call id: ids may repeat. It is nil for the calls of hidden rows.
	latest := map[string]*group{}
	for i := range entries {
		e := &entries[i]
		hidden := e.Flags.Has(message.Hidden)
		home := -1
		if e.Role == message.Result && !hidden {
			home = answer(latest, e.Results, i)
		}
		if home < 0 {
			home = len(units)
			units = append(units, unit{})
			if !hidden && (e.Role != message.Result || isUser(e)) {
				units[home].shown, units[home].weight = m.shown(e, 0), weight(e)
			}
		}
		u := &units[home]
		u.entries = append(u.entries, i)
		// Words of the user beside results of no call here are a user message.
		if isAssistant(e) || isUser(e) && u.entries[0] == i {
			lastSpeech = i
		}
		u.user = u.user || isUser(e)
		var g *group
		if isAssistant(e) && len(e.Calls) > 0 {
			g = &group{unit: home}
			groups = append(groups, g)
		}
		for _, id := range e.Calls {
			if latest[id] = g; g != nil {
				g.slots = append(g.slots, slot{id: id, result: -1})
			}
		}
		unread := e.Role == message.Result && !hidden && u.entries[0] != i && i > lastAssistant && lastAssistant >= 0
		u.keep = u.keep || i == lastUser || unread
	}

	// open is the call that is not answered yet, if there is one.
	open := len(entries)
	if n := len(groups); n > 0 && !groups[n-1].complete() && units[groups[n-1].unit].entries[0] == lastSpeech {
		open = lastSpeech
	}
	for _, g := range groups {
		u := &units[g.unit]
		live := u.entries[0] == lastSpeech
		whole := live || g.complete()
		if u.shown, u.weight = 0, 0; whole {
			u.shown, u.weight = m.group(entries, u.entries[0], g.slots)
			u.keep = u.keep || !g.complete()
		}
		m.alone(entries[:open], u, g, whole)
	}
	hold(units, open)
	retireHeartbeats(entries, units)
	for i := len(units) - 1; i >= 0; i-- {
		if units[i].shown > 0 {
			units[i].keep = true
			break
		}
	}
	return units
}

// hold keeps what was logged behind an open call: the window does not show it
// before the call has its result.
func hold(units []unit, open int) {
	for i := range units {
		u := &units[i]
		if last := u.entries[len(u.entries)-1]; last <= open {
			continue
		}
		u.keep = true
		if u.entries[0] > open {
			u.shown, u.weight = 0, 0
		}
	}
}

// newest finds the newest entries that were said by a user and by an assistant;
// -1 for none.
func newest(entries []Entry) (user, assistant int) {
	user, assistant = -1, -1
	for i := range entries {
		e := &entries[i]
		if isUser(e) {
			user = i
		}
		if isAssistant(e) {
			assistant = i
		}
	}
	return user, assistant
}

// answer gives a result to the group that all its ids name and tells the
// group's unit, -1 for an orphan.
func answer(latest map[string]*group, ids []string, entry int) int {
	var g *group
	for i, id := range ids {
		of := latest[id]
		if of == nil || i > 0 && of != g {
			return -1
		}
		g = of
	}
	if g == nil {
		return -1
	}
	for _, id := range ids {
		g.answer(id, entry)
	}
	return g.unit
}

// retireHeartbeats takes the heartbeat messages of each turn without tool calls
// out of what is shown, once the next turn has begun.
func retireHeartbeats(entries []Entry, units []unit) {
	from, worked := 0, false
	for i := range units {
		e := &entries[units[i].entries[0]]
		if e.Flags.Has(message.Hidden) {
			continue
		}
		if e.Role == message.User {
			if !worked {
				retire(entries, units[from:i])
			}
			from, worked = i, false
		}
		worked = worked || len(e.Calls) > 0
	}
}

func retire(entries []Entry, units []unit) {
	for i := range units {
		if e := &entries[units[i].entries[0]]; e.Role != message.Result && e.Flags.Has(message.Heartbeat) && !units[i].keep {
			units[i].shown, units[i].weight = 0, 0
		}
	}
}
