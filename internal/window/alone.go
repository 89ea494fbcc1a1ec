package window

import "github.com/engined/engined/internal/message"

// A message may hold tool results and words of the user (Anthropic). Where its
// results can't be shown, because their call is not here, was left out, or has
// newer results, the words are shown alone: as a user message in its own place.

// alone reports whether of entry i only the words of the user are shown.
func (l *layout) alone(i int) bool {
	return l.in.Entries[i].Role == message.Result && l.why[i] == none && l.group[i] < 0
}

// wait notes that a message with words of the user came while a group was open.
func (p *pairing) wait(i, open int32) {
	if p.behind == nil {
		p.behind = make(map[int32]int32)
	}
	p.behind[i] = open
}

// free shows the words of the user in what settle left out, unless a call is
// open before them: then they follow its results, as all does that is logged
// meanwhile.
func (p *pairing) free() {
	for i, behind := range p.behind {
		g := &p.groups[p.group[i]]
		seq := p.in.Entries[i].Seq
		if p.why[i] == none {
			if g.late() && seq < g.doneAt {
				if p.joined == nil {
					p.joined = make(map[int32]int64)
				}
				p.joined[i] = g.doneAt
			}
			continue
		}
		// at is when a newer result took its place; before that it was shown with
		// its call, but for the time that the call was taken for unanswered.
		release := g.releasedAt()
		if g.doneAt == 0 || p.at[i] < g.doneAt {
			p.at[i] = max(seq, release)
		}
		p.why[i], p.group[i] = none, -1
		if behind >= 0 && release != 0 {
			release = p.groups[behind].releasedAt()
			p.at[i] = max(p.at[i], release)
		}
		if release == 0 {
			p.why[i] = Held
		}
	}
}
