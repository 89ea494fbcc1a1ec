package window

import (
	"strconv"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
)

// Build plans the window. It is a pure function of its input; every summary
// and entry that it was given is in Items or in LeftOut, exactly once. It
// reads the input's slices and keeps none of them.
func Build(in Input) Plan {
	l := arrange(in)
	f := l.fit()
	shown := l.showSummaries(f.summaryRoom)
	p := Plan{Dialect: in.Dialect, EpochLabel: strconv.FormatInt(in.Epoch, 10)}
	b := builder{layout: l, plan: &p}
	b.summaries(shown)
	if len(p.Items) == 0 && len(in.Summaries) > 0 {
		// None of the summaries has room: the window begins without. No room was
		// kept for an anchor, so the tail starts where it needs none of its own.
		e := l.edgesBehind(false)
		for f.start = max(f.start, e.min); f.start <= l.newestUser && e.anchored(f.start); f.start++ {
		}
		if e.notice {
			f.start = len(l.units)
		}
	}
	b.messages(f)
	if f.start > f.lead || in.Older {
		p.TrimFrom = b.trimFrom(f)
		p.EpochLabel += ".t" + strconv.FormatInt(p.TrimFrom, 10)
	}
	p.EpochLabel += b.pruned.label()
	p.Fingerprint = b.fingerprint(f)
	return p
}

// builder fills a plan from a layout.
type builder struct {
	*layout
	plan *Plan
	// pinned and tail are the parts of plan.Items behind the summaries.
	pinned, tail []Item
	// tailAt is when each item of tail came into the window.
	tailAt []int64
	// opened tells that the engine's notice begins the window.
	opened bool
}

func (b *builder) summaries(shown []showing) {
	p := b.plan
	for i, s := range b.in.Summaries {
		how := shown[i]
		if !how.keep {
			p.LeftOut = append(p.LeftOut, LeftOut{Seq: s.Seq, Kind: KindSummary, Reason: SummaryNoRoom, Tokens: int(b.in.calibrated(s.Tokens))})
			continue
		}
		it := Item{
			Seq: s.Seq, Kind: KindSummary, Tokens: int(how.tokens), CutTo: how.cutTo, Notice: how.notice, Whole: s.Tokens, Reason: IsSummary,
		}
		if how.cutTo > 0 {
			it.Reason = SummaryShort
		}
		p.Summaries = append(p.Summaries, s)
		p.Items = append(p.Items, it)
		p.Tokens += it.Tokens
	}
}

// messages adds what is pinned in front of the tail, the tail, and the report
// of what is in neither.
func (b *builder) messages(f fitting) {
	p := b.plan
	shown := make([]bool, len(b.in.Entries))
	if b.edgesBehind(len(p.Summaries) > 0).notice {
		n := int(b.in.calibrated(openingTokens))
		p.Items, p.Tokens = append(p.Items, Item{Kind: KindNotice, Tokens: n, Whole: openingTokens, Reason: Opens}), p.Tokens+n
		b.opened = true
	}
	from := len(p.Items)
	b.front(f, func(i int) {
		if b.units[i].pinned == none {
			b.units[i].pinned = TurnStart
		}
		b.show(b.units[i], shown)
	})
	pinned := len(p.Items)
	for i := f.start; i < len(b.units); i++ {
		b.show(b.units[i], shown)
	}
	b.pinned, b.tail = p.Items[from:pinned], p.Items[pinned:]
	b.tailAt = b.tailAt[len(b.pinned):]

	over := contextengine.OverBudget{Budget: b.in.Budget, Needed: p.Tokens}
	if int64(p.Tokens) > b.in.budget() {
		for _, it := range p.Items {
			over.Items = append(over.Items, contextengine.OverBudgetItem{Seq: it.Seq, Tokens: it.Tokens})
		}
		p.Over = &over
	}

	if n := len(shown) - (len(p.Items) - from); n > 0 {
		b.leaveOut(f, shown, n)
	}
}

// front calls show for the units in front of the tail: what is pinned, and the
// tail's anchor. They come in log order, but a user message before all others
// where the provider wants the window to begin with one.
func (b *builder) front(f fitting, show func(unit int)) {
	e := b.edgesBehind(len(b.plan.Summaries) > 0)
	anchor := e.anchor(f.start)
	ahead := -1
	if anchor >= 0 && e.firstPinned < anchor {
		ahead = anchor
		show(anchor)
	}
	for i := range f.start {
		if (b.units[i].pinned != none || i == anchor) && i != ahead {
			show(i)
		}
	}
}

// show adds a unit's messages.
func (b *builder) show(u unit, shown []bool) {
	reason := InTail
	if u.pinned != none {
		reason = u.pinned
	}
	calls := 0
	add := func(i int32) {
		e := &b.in.Entries[i]
		to, tokens := b.in.cut(e, calls)
		it := Item{Seq: e.Seq, Reason: reason}
		if e.By > 0 {
			it.Reason = Rewritten
		}
		if less, ok := b.pruned.to[i]; ok {
			to, tokens = less, b.in.calibrated(less)
			it.Prune, it.Reason = PruneTrim, PrunedTrim
			if e.Offset <= b.pruned.clear {
				it.Prune, it.Reason = PruneClear, PrunedClear
			}
		}
		it.Tokens, it.CutTo, it.Whole, it.WithoutResults = int(tokens), to, e.Tokens, b.alone(int(i))
		b.plan.Items = append(b.plan.Items, it)
		b.plan.Tokens += int(tokens)
		b.tailAt = append(b.tailAt, b.at[i])
		shown[i] = true
	}
	add(u.head)
	calls = len(b.in.Entries[u.head].Calls)
	for _, r := range b.resultsOf(u) {
		add(r)
	}
}

// leaveOut reports the n entries that are not shown.
func (b *builder) leaveOut(f fitting, shown []bool, n int) {
	leading := int32(len(b.in.Entries))
	if f.lead < len(b.units) {
		leading = b.units[f.lead].head
	}
	out := make([]LeftOut, len(b.plan.LeftOut), len(b.plan.LeftOut)+n)
	copy(out, b.plan.LeftOut)
	for i := range b.in.Entries {
		if shown[i] {
			continue
		}
		e := &b.in.Entries[i]
		reason := b.why[i]
		if reason == none {
			reason = Trimmed
			head := int32(i)
			if e.Role == message.Result && b.group[i] >= 0 {
				head = b.groups[b.group[i]].head
			}
			if f.lead > 0 && head < leading {
				reason = Leading
			}
		}
		out = append(out, LeftOut{Seq: e.Seq, Reason: reason, Tokens: int(b.in.calibrated(e.Tokens))})
	}
	b.plan.LeftOut = out
}

// trimFrom names the edge at which the tail starts. Behind the last message
// there is no seq; then all that is shown is pinned.
func (b *builder) trimFrom(f fitting) int64 {
	if f.start < len(b.units) {
		return b.in.Entries[b.units[f.start].head].Seq
	}
	newest := int64(0)
	for _, it := range b.pinned {
		newest = max(newest, it.Seq)
	}
	return newest
}
