package window

import "github.com/engined/engined/internal/message"

// Unit is what no cut divides, as a window would show it without a trim: a
// message, or a tool group with all that was logged as its results.
type Unit struct {
	// Entries are indexes of Input.Entries, ascending; Shown are those of them
	// that a window shows. A unit that shows nothing is hidden, dead, orphaned,
	// spent, or waits behind an open call.
	Entries, Shown []int
	// Tokens is what it takes, calibrated and with large results cut.
	Tokens int
	// User tells that it shows the words of a user.
	User bool
	// Stays tells that windows show it whatever the budget, or will once the call
	// before it has its results: the newest words of a user, an open call and what
	// was logged behind it, results that the model has not read.
	Stays bool
}

// Units sorts the entries into units, in log order. Every entry is in one.
func Units(in Input) []Unit {
	l := arrange(in)
	units := make([]Unit, 0, len(in.Entries))
	home := make([]int, len(l.groups))
	at := make([]int, len(in.Entries))
	for i := range in.Entries {
		e := &in.Entries[i]
		g := l.group[i]
		switch {
		case g >= 0 && e.Role == message.Result:
			at[i] = home[g]
		case g >= 0 && e.Role == message.Assistant:
			home[g] = len(units)
			fallthrough
		default:
			at[i] = len(units)
			units = append(units, Unit{})
		}
		u := &units[at[i]]
		u.Entries = append(u.Entries, i)
		u.Stays = u.Stays || l.why[i] == Held
	}
	for i := range l.units {
		l.measure(&l.units[i], &units[at[l.units[i].head]])
	}
	l.keepBehindOpenCall(units)
	return units
}

// measure fills in what a unit shows.
func (l *layout) measure(u *unit, out *Unit) {
	show := func(i int32, calls int) {
		e := &l.in.Entries[i]
		_, tokens := l.in.cut(e, calls)
		out.Shown = append(out.Shown, int(i))
		out.Tokens += int(tokens)
		out.User = out.User || e.Role == message.User || e.Role == message.Result && e.Flags.Has(message.UserText)
	}
	show(u.head, 0)
	for _, r := range l.resultsOf(*u) {
		show(r, len(l.in.Entries[u.head].Calls))
	}
	out.Stays = out.Stays || u.pinned == NewestUser || u.pinned == OpenCall || u.pinned == Unread
}

// keepBehindOpenCall has all stay that was logged behind an open call: where it
// will stand is not known before the call has its results.
func (l *layout) keepBehindOpenCall(units []Unit) {
	for i := range l.groups {
		if !l.groups[i].live() {
			continue
		}
		for u := range units {
			if last := units[u].Entries[len(units[u].Entries)-1]; last > int(l.groups[i].head) {
				units[u].Stays = true
			}
		}
	}
}
