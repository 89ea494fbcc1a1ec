package compact

import "github.com/engined/engined/internal/message"

// unit is what no cut divides: a tool group, or a message that is in none.
type unit struct {
	// entries are indexes of PlanInput.Entries, ascending.
	entries []int
	// shown is what the unit takes in the window; 0 for what the window leaves
	// out: hidden rows, dead calls, orphan results, spent heartbeats.
	shown int
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
func unitsOf(entries []Entry) []unit {
	lastUser, lastAssistant, lastSpeech := -1, -1, -1
	for i := range entries {
		if isUser(&entries[i]) {
			lastUser, lastSpeech = i, i
		}
		if isAssistant(&entries[i]) {
			lastAssistant, lastSpeech = i, i
		}
	}

	units := make([]unit, 0, len(entries))
	var groups []*group
	// latest is by call id: ids may repeat, a result answers the newest one.
	latest := map[string]*group{}
	keep := func(u int) { units[u].keep = true }
	for i := range entries {
		e := &entries[i]
		hidden := e.Flags.Has(message.Hidden)
		home := -1
		if e.Role == message.Result && !hidden {
			for _, id := range e.Results {
				if g := latest[id]; g != nil {
					g.answer(id, i)
					if home < 0 {
						home = g.unit
					}
				}
			}
		}
		if home < 0 {
			home = len(units)
			units = append(units, unit{})
			if !hidden && (e.Role != message.Result || e.Flags.Has(message.UserText)) {
				units[home].shown = e.Tokens
			}
		}
		u := &units[home]
		u.entries = append(u.entries, i)
		u.user = u.user || isUser(e)
		if isAssistant(e) && len(e.Calls) > 0 {
			g := &group{unit: home}
			for _, id := range e.Calls {
				g.slots = append(g.slots, slot{id: id, result: -1})
				latest[id] = g
			}
			groups = append(groups, g)
		}
		if i == lastUser || e.Role == message.Result && !hidden && i > lastAssistant && lastAssistant >= 0 {
			keep(home)
		}
	}

	for _, g := range groups {
		u := &units[g.unit]
		switch {
		case g.complete():
			u.shown = groupTokens(entries, u.entries[0], g.slots)
		case u.entries[0] == lastSpeech:
			u.shown = groupTokens(entries, u.entries[0], g.slots)
			keep(g.unit)
		default:
			u.shown = 0
		}
	}
	hideHeartbeats(entries, units, lastUser)
	for i := len(units) - 1; i >= 0; i-- {
		if units[i].shown > 0 {
			keep(i)
			break
		}
	}
	return units
}

// groupTokens is a group as shown: the calls and, of each, the last result.
func groupTokens(entries []Entry, assistant int, slots []slot) int {
	total := entries[assistant].Tokens
	seen := map[int]bool{}
	for _, s := range slots {
		if s.result >= 0 && !seen[s.result] {
			seen[s.result] = true
			total += entries[s.result].Tokens
		}
	}
	return total
}

// hideHeartbeats takes heartbeat exchanges without tool calls out of what is
// shown, once a newer user message exists.
func hideHeartbeats(entries []Entry, units []unit, lastUser int) {
	for start := 0; start < len(units); {
		end := start + 1
		for end < len(units) && !units[end].user {
			end++
		}
		spent := units[start].user && units[start].entries[0] < lastUser
		for _, u := range units[start:end] {
			e := &entries[u.entries[0]]
			if (isUser(e) || isAssistant(e)) && (!e.Flags.Has(message.Heartbeat) || len(e.Calls) > 0) {
				spent = false
			}
		}
		if spent {
			for i := start; i < end; i++ {
				units[i].shown = 0
			}
		}
		start = end
	}
}
