package events

// A Line is what a fork inherited: runs of other sessions' logs, oldest first,
// that stand before the session's own log. Ranges of a path and the coverage of
// summaries name messages by their place in the line: the first segment's seqs
// are its places, each further one counts on, and the session's own seqs follow
// behind Base. So a place means the same in a parent and in all that inherit it,
// and in a session without ancestors places are seqs.
type Line []Segment

// Segment is one ancestor's part of a line.
type Segment struct {
	// SID is the ancestor, zero where it was erased; SessionKey its key.
	SID        SID    `json:"sid"`
	SessionKey string `json:"sessionKey,omitempty"`
	// After and To bound its places: seq 1 is at After+1, To is the place of the
	// last seq that was inherited.
	After int64 `json:"after"`
	To    int64 `json:"to"`
	// Offset is the running token total at To, along the path.
	Offset int64 `json:"offset,omitempty"`
}

// Base is the number of inherited places: the session's own seq 1 is at Base+1.
func (l Line) Base() int64 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].To
}

// Place is where one of the session's own seqs stands.
func (l Line) Place(seq int64) int64 { return l.Base() + seq }

// Locate names what stands at a place: own is false for an inherited event,
// which has its seq in the segment's session.
func (l Line) Locate(place int64) (seg Segment, seq int64, own bool) {
	if place > l.Base() {
		return Segment{}, place - l.Base(), true
	}
	for _, s := range l {
		if place > s.After && place <= s.To {
			return s, place - s.After, false
		}
	}
	return Segment{}, 0, false
}

// Seq is the seq of what stands at a place, in whichever session.
func (l Line) Seq(place int64) int64 {
	_, seq, _ := l.Locate(place)
	return seq
}

// Extend is the line of a fork of the session at one of its seqs.
func (l Line) Extend(parent SID, key string, atSeq, offset int64) Line {
	out := make(Line, 0, len(l)+1)
	out = append(out, l...)
	return append(out, Segment{SID: parent, SessionKey: key, After: l.Base(), To: l.Base() + atSeq, Offset: offset})
}

// Ancestors are the sessions that the line reads from.
func (l Line) Ancestors() []SID {
	var out []SID
	for _, s := range l {
		if s.SID != (SID{}) {
			out = append(out, s.SID)
		}
	}
	return out
}

// WithoutAncestor is the state after an ancestor was erased: what the session
// inherited up to the end of that ancestor's part is gone from the path, and so
// are the summaries made of any of it, the session's own included. It is false
// where nothing was inherited from that session. Places stay what they are.
func (s State) WithoutAncestor(erased SID) (State, bool) {
	end, offset := int64(0), int64(0)
	for _, seg := range s.Line {
		if seg.SID == erased && erased != (SID{}) {
			end, offset = seg.To, seg.Offset
		}
	}
	if end == 0 {
		return s, false
	}
	next := s
	next.Line = Line{{To: end, Offset: offset}}
	for _, seg := range s.Line {
		if seg.To > end {
			next.Line = append(next.Line, seg)
		}
	}
	next.Path = nil
	for _, r := range s.Path {
		if r.To > end {
			next.Path = append(next.Path, Range{From: max(r.From, end+1), To: r.To})
		}
	}
	next.Live = nil
	for _, l := range s.Live {
		if l.Seq > end && !AnyUpTo(l.Covers, end) {
			next.Live = append(next.Live, l)
		}
	}
	next.Superseded = nil
	for _, x := range s.Superseded {
		if x.Seq > end && x.By > end {
			next.Superseded = append(next.Superseded, x)
		}
	}
	next.FloorOffset = max(s.FloorOffset, offset)
	// What an undo would bring back was made of what is gone.
	next.Base, next.ForcedAt = 0, 0
	return next, true
}

// AnyUpTo reports whether some range begins at or before a place.
func AnyUpTo(ranges []Range, place int64) bool {
	for _, r := range ranges {
		if r.From <= place {
			return true
		}
	}
	return false
}
