package events

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
)

// Open is the To of a range that grows with the session.
const Open = int64(math.MaxInt64)

// LiveSummary is what a window needs to know of a summary that stands in it.
type LiveSummary struct {
	Seq    int64   `json:"seq"`
	Level  int     `json:"level"`
	Tokens int     `json:"tokens"`
	Covers []Range `json:"covers"`
	// CoveredTokens is the raw estimate of all messages under it.
	CoveredTokens int64 `json:"coveredTokens"`
	// Timestamp is the newest source's, in Unix milliseconds.
	Timestamp int64 `json:"timestamp,omitempty"`
}

// State is what an epoch fixes: it changes at epoch steps and nowhere else.
// The zero value with Path = {1, Open} is a session's first epoch.
type State struct {
	Epoch int64 `json:"epoch"`
	// Line is what the session inherited; empty for most. All numbers of events
	// below are places in it.
	Line Line `json:"line,omitempty"`
	// Path is the active path as ranges of places, ascending; the last is open.
	// Everything before its start is behind the floor.
	Path []Range `json:"path"`
	// FloorOffset is the running token total before the first message of Path.
	FloorOffset int64 `json:"floorOffset,omitempty"`
	// Live are the summaries that stand in the window, oldest first.
	Live []LiveSummary `json:"live,omitempty"`
	// Superseded are the uncovered messages that stand in the window in a shorter
	// form, by place.
	Superseded []Superseded `json:"superseded,omitempty"`
	// FactorMilli calibrates token estimates for the session's newest model, in
	// thousandths; Factors for each model of which enough was reported.
	FactorMilli int            `json:"factorMilli"`
	Factors     map[string]int `json:"factors,omitempty"`
	// Cause is why this epoch began; empty in the first one.
	Cause Cause `json:"cause,omitempty"`
	// Base is the epoch whose set of summaries an undo would restore; 0 when
	// there is none.
	Base int64 `json:"base,omitempty"`
	// ForcedAt is the place of this epoch's step if a forced compaction began it;
	// another one right after it has nothing to do.
	ForcedAt int64 `json:"forcedAt,omitempty"`
}

// FirstState is the state of a session that never stepped its epoch.
func FirstState() State {
	return State{Epoch: 1, Path: []Range{{From: 1, To: Open}}, FactorMilli: 1000}
}

// EncodeState is the form that the store keeps.
func EncodeState(s State) ([]byte, error) { return json.Marshal(s) }

// DecodeState reads what EncodeState wrote; nothing stored is FirstState.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return FirstState(), nil
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("session state: %w", err)
	}
	if len(s.Path) == 0 || s.Path[len(s.Path)-1].To != Open {
		return State{}, fmt.Errorf("session state: path %v is not open", s.Path)
	}
	return s, nil
}

// OnPath reports whether a message event lies on the active path.
func (s State) OnPath(seq int64) bool { return inRanges(s.Path, seq) }

// Covered reports whether a live summary covers the message.
func (s State) Covered(seq int64) bool {
	for i := range s.Live {
		if inRanges(s.Live[i].Covers, seq) {
			return true
		}
	}
	return false
}

// Start is the first seq that can be on the path.
func (s State) Start() int64 { return s.Path[0].From }

// FirstUncovered is a lower bound for the seqs of uncovered path messages: the
// covered run from the path's start may be skipped by a reader.
func (s State) FirstUncovered() int64 {
	var all []Range
	for i := range s.Live {
		all = append(all, s.Live[i].Covers...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].From < all[j].From })
	from := s.Start()
	for _, p := range s.Path {
		if p.To < from {
			continue
		}
		at := max(p.From, from)
		for _, c := range all {
			if c.From <= at && at <= c.To {
				at = c.To + 1
			}
		}
		if at <= p.To {
			return at
		}
		from = at
	}
	return from
}

// LiveTokens is the raw estimate of the untrimmed window when the path's leaf
// has the given running total.
func (s State) LiveTokens(leafOffset int64) int64 {
	n := leafOffset - s.FloorOffset
	for i := range s.Live {
		n += int64(s.Live[i].Tokens) - s.Live[i].CoveredTokens
	}
	for _, x := range s.Superseded {
		if s.OnPath(x.Seq) && !s.Covered(x.Seq) {
			n -= int64(x.Saved)
		}
	}
	return n
}

// CutPath is the path up to a seq, followed by what comes after reopenAt.
func CutPath(path []Range, upto, reopenAt int64) []Range {
	var out []Range
	for _, r := range path {
		if r.From > upto {
			break
		}
		out = append(out, Range{From: r.From, To: min(r.To, upto)})
	}
	return append(out, Range{From: reopenAt, To: Open})
}

// MostCovering is the one of two sets of live summaries that stands for more.
func MostCovering(a, b []LiveSummary) []LiveSummary {
	if coveredBy(b) > coveredBy(a) {
		return b
	}
	return a
}

func coveredBy(live []LiveSummary) (n int64) {
	for i := range live {
		n += live[i].CoveredTokens
	}
	return n
}

// KeepOnPath drops the summaries that do not lie wholly on the path.
func KeepOnPath(live []LiveSummary, path []Range) []LiveSummary {
	var out []LiveSummary
	for _, l := range live {
		whole := true
		for _, c := range l.Covers {
			if !rangeWithin(c, path) {
				whole = false
				break
			}
		}
		if whole {
			out = append(out, l)
		}
	}
	return out
}

func rangeWithin(r Range, path []Range) bool {
	for _, p := range path {
		if p.From <= r.From && r.To <= p.To {
			return true
		}
	}
	return false
}

func inRanges(rs []Range, seq int64) bool {
	for _, r := range rs {
		if r.Contains(seq) {
			return true
		}
	}
	return false
}
