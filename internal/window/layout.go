package window

import "github.com/engined/engined/internal/message"

// layout is the path sorted into units, before any budget.
type layout struct {
	in Input
	// why says of each entry why it can't be shown, none where it can.
	why []Reason
	// at is the seq of the append with which an entry came into the sequence
	// of what can be shown or, where why is set, left it.
	at []int64
	// group is the tool group of a call or its result, or the group that a
	// note waits for; -1 where there is none.
	group  []int32
	groups []group
	// joined is when words of the user that had stood alone went to their call,
	// which had got its last result.
	joined map[int32]int64
	// results holds the shown results of all groups, each group's in a row.
	results []int32
	units   []unit
	// lastRead is the seq of the newest assistant message: what was logged
	// before it has been read by the model.
	lastRead int64
	// newestUser is the unit of the newest user message, or -1.
	newestUser int
	// unresolved: a result that must be shown answers no call here.
	unresolved bool
	pruned     pruned
	// unsettled: the oldest turn is not whole, and whether its heartbeats are
	// shown depends on the rest; or where pruning ends does.
	unsettled bool
}

// unit is what cuts leave whole: a message, or a tool group.
type unit struct {
	head   int32
	group  int32
	charge int64
	pinned Reason
	user   bool
}

// arrange sorts the entries into units, in window order.
func arrange(in Input) *layout {
	n := len(in.Entries)
	l := &layout{
		in:         in,
		why:        make([]Reason, n),
		at:         make([]int64, n),
		group:      make([]int32, n),
		newestUser: -1,
	}
	l.pair()
	l.retireHeartbeats()
	l.collect()
	l.pin()
	l.prune()
	return l
}

// collect makes the units from what can be shown.
func (l *layout) collect() {
	n := 0
	for i := range l.why {
		if l.why[i] == none && (l.in.Entries[i].Role != message.Result || l.alone(i)) {
			n++
		}
	}
	l.units = make([]unit, 0, n)
	for i := range l.why {
		e := &l.in.Entries[i]
		alone := l.alone(i)
		if l.why[i] != none || (e.Role == message.Result && !alone) {
			continue
		}
		u := unit{head: int32(i), group: -1, user: alone || e.Role == message.User, charge: l.in.charge(e, 0)}
		if e.Role == message.Assistant {
			u.group = l.group[i]
		}
		for _, r := range l.resultsOf(u) {
			u.charge += l.in.charge(&l.in.Entries[r], len(e.Calls))
		}
		l.units = append(l.units, u)
	}
}

// resultsOf lists the entries of a unit's results, in the order shown.
func (l *layout) resultsOf(u unit) []int32 {
	if u.group < 0 {
		return nil
	}
	g := &l.groups[u.group]
	return l.results[g.from:g.to]
}

// pin marks the units that are shown whatever the budget. User text may also
// stand in a result; the newest user message proper is shown nevertheless, for
// some windows must begin with one.
func (l *layout) pin() {
	newest, newestText := int64(0), int64(0)
	pins, withText := 0, -1
	for i := range l.units {
		u := &l.units[i]
		if e := &l.in.Entries[u.head]; u.user && e.Seq > newest {
			newest, l.newestUser = e.Seq, i
		}
		for _, r := range l.resultsOf(*u) {
			e := &l.in.Entries[r]
			if e.Seq > l.lastRead {
				u.pinned = Unread
			}
			if e.Flags.Has(message.UserText) && e.Seq > newestText {
				newestText, withText = e.Seq, i
			}
		}
		if u.group >= 0 && l.groups[u.group].live() {
			u.pinned = OpenCall
		}
		if u.pinned != none {
			pins++
		}
	}
	if newestText < newest {
		withText = -1
	}
	for _, i := range [...]int{l.newestUser, withText} {
		if i >= 0 {
			l.units[i].pinned = NewestUser
			pins++
		}
	}
	if l.in.Dialect == message.Anthropic && len(l.in.Summaries) == 0 {
		// With no user to begin with it would be refused.
		return
	}
	if n := len(l.units); n > 0 && pins == 0 {
		l.units[n-1].pinned = Newest
	}
}
