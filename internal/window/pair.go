package window

import (
	"slices"

	"github.com/engined/engined/internal/message"
)

// group is an assistant message with tool calls and what answers them.
type group struct {
	head  int32
	calls int32
	// answers are the results that were logged for it, as a chain through
	// pairing.next.
	first, last int32
	// odd: one id names several of its calls, or one message answers several.
	odd bool
	// from, to is its part of layout.results.
	from, to int32
	// doneAt is the seq with which the last open call was answered, goneAt that
	// of the next user or assistant message; 0 where it has not happened.
	doneAt, goneAt int64
	// changedAt is the newest seq that may have replaced a shown result.
	changedAt int64
}

func (g *group) complete() bool { return g.doneAt != 0 }
func (g *group) live() bool     { return g.doneAt == 0 && g.goneAt == 0 }

// late reports that the last result came when the conversation had gone on.
func (g *group) late() bool { return g.goneAt != 0 && g.goneAt < g.doneAt }

// releasedAt is when the group ceased to be open; 0 while it is.
func (g *group) releasedAt() int64 {
	if g.doneAt == 0 || g.late() {
		return g.goneAt
	}
	return g.doneAt
}

// callRef is one call: its group, or -1 where the message is hidden, and its
// place among the group's calls.
type callRef struct{ group, call int32 }

// pairing is what only the search for pairs needs.
type pairing struct {
	*layout
	// calls has the most recent call of each id. Ids repeat: some providers
	// count from zero in each turn, some use a single one.
	calls map[string]callRef
	next  []int32
	// slot is the call that a result answers, where it answers exactly one.
	slot []int32
	// answer is scratch: the result that answers each call of a group.
	answer []int32
	// behind is the group that was open when a result with words of the user was
	// logged, -1 for none.
	behind map[int32]int32
}

// pair finds the tool groups and says of each message that belongs to none, or
// to a broken one, why it can't be shown.
func (l *layout) pair() {
	n := len(l.in.Entries)
	links := make([]int32, 2*n)
	p := &pairing{layout: l, calls: make(map[string]callRef), next: links[:n], slot: links[n:]}
	results := 0
	open := int32(-1)
	speak := func(seq int64) {
		if open >= 0 {
			l.groups[open].goneAt = seq
			open = -1
		}
	}
	for i := range l.in.Entries {
		e := &l.in.Entries[i]
		l.at[i], l.group[i] = e.Seq, -1
		if e.Flags.Has(message.Hidden) {
			l.why[i] = HiddenMessage
			for _, id := range e.Calls {
				p.calls[id] = callRef{group: -1}
			}
			continue
		}
		switch e.Role {
		case message.Result:
			results++
			if p.attach(int32(i)); l.alone(i) {
				speak(e.Seq)
			} else if l.group[i] >= 0 && e.Flags.Has(message.UserText) {
				p.wait(int32(i), open)
			}
		case message.User, message.Assistant:
			speak(e.Seq)
			if e.Role == message.User {
				break
			}
			l.lastRead = e.Seq
			if len(e.Calls) > 0 {
				open = p.open(int32(i))
			}
		default:
			l.group[i] = open
		}
	}
	l.results = make([]int32, 0, results)
	for g := range l.groups {
		p.settle(&l.groups[g])
	}
	l.hold()
	p.free()
	l.findUnresolved()
}

// open starts the group of an assistant message with calls.
func (p *pairing) open(i int32) int32 {
	g := int32(len(p.groups))
	ids := p.in.Entries[i].Calls
	odd := false
	for c, id := range ids {
		if ref, ok := p.calls[id]; ok && ref.group == g {
			odd = true
			continue
		}
		p.calls[id] = callRef{g, int32(c)}
	}
	p.groups = append(p.groups, group{head: i, calls: int32(len(ids)), first: -1, last: -1, odd: odd})
	p.group[i] = g
	return g
}

// attach gives a result to the group whose calls it answers.
func (p *pairing) attach(i int32) {
	ids := p.in.Entries[i].Results
	owner, known := int32(-1), false
	for k, id := range ids {
		ref, ok := p.calls[id]
		known = known || ok
		if !ok || ref.group < 0 || (k > 0 && ref.group != owner) {
			owner = -1
			break
		}
		owner = ref.group
		p.slot[i] = ref.call
	}
	if owner < 0 {
		p.why[i] = OrphanResult
		switch {
		case p.in.Older && len(ids) > 0 && !known:
			p.why[i] = Trimmed
		case p.in.Entries[i].Flags.Has(message.UserText):
			p.why[i] = none
		}
		return
	}
	g := &p.groups[owner]
	p.group[i], p.next[i] = owner, -1
	g.odd = g.odd || len(ids) > 1
	if g.last >= 0 {
		p.next[g.last] = i
	} else {
		g.first = i
	}
	g.last = i
}

// settle chooses the results that a group shows and decides whether it is
// shown at all.
func (p *pairing) settle(g *group) {
	g.from = int32(len(p.results))
	if g.odd {
		p.settleOdd(g)
	} else {
		p.settlePlain(g)
	}
	g.to = int32(len(p.results))
	shown := p.results[g.from:g.to]
	// User text between two results is refused where the provider merges the
	// messages, so a message with text comes last.
	slices.SortStableFunc(shown, func(a, b int32) int {
		return int(p.in.Entries[a].Flags&message.UserText) - int(p.in.Entries[b].Flags&message.UserText)
	})
	switch {
	case g.goneAt == 0 || (g.complete() && g.doneAt < g.goneAt):
	case g.complete():
		// It was left out until its last result came.
		p.at[g.head] = g.doneAt
		for _, r := range shown {
			p.at[r] = max(p.at[r], g.doneAt)
		}
	default:
		p.why[g.head], p.at[g.head] = Unanswered, g.goneAt
		for _, r := range shown {
			p.why[r] = Unanswered
		}
		p.results, g.to = p.results[:g.from], g.from
	}
}

// settlePlain is the common case: each message answers one call, the last one
// for a call is shown.
func (p *pairing) settlePlain(g *group) {
	p.answer = p.answer[:0]
	for range g.calls {
		p.answer = append(p.answer, -1)
	}
	answered := int32(0)
	for r := g.first; r >= 0; r = p.next[r] {
		was := p.answer[p.slot[r]]
		p.answer[p.slot[r]] = r
		if was >= 0 {
			p.why[was], p.at[was] = Superseded, p.in.Entries[r].Seq
			g.changedAt = p.in.Entries[r].Seq
			continue
		}
		if answered++; answered == g.calls {
			g.doneAt = p.in.Entries[r].Seq
		}
	}
	for _, r := range p.answer {
		if r >= 0 {
			p.results = append(p.results, r)
		}
	}
}

// hold keeps back what was logged behind an open call, so that the call stays
// at the end of the window until its result is there.
func (l *layout) hold() {
	for i := range l.in.Entries {
		e := &l.in.Entries[i]
		if l.why[i] != none || l.group[i] < 0 || e.Role == message.Assistant || e.Role == message.Result {
			continue
		}
		g := &l.groups[l.group[i]]
		release := g.releasedAt()
		switch {
		case release == 0:
			l.why[i] = Held
		case release > e.Seq:
			l.at[i] = release
		}
	}
}

// findUnresolved looks for results whose call may be older than what was loaded
// and that must be shown then, or are the words of a user if there is no such call.
func (l *layout) findUnresolved() {
	for i := range l.in.Entries {
		if l.why[i] == Trimmed {
			e := &l.in.Entries[i]
			l.unresolved = l.unresolved || e.Seq > l.lastRead || e.Flags.Has(message.UserText)
		}
	}
}
