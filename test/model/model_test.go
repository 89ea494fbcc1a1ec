package model

import (
	"slices"
	"strings"
)

// item is a message of a window and the session that it was written to.
type item struct {
	owner *session
	seq   int
	raw   string
}

// session is what the model knows of one.
type session struct {
	key    string
	parent *session
	// raws[seq] is the message at a seq, empty for other events.
	raws []string
	// shown is the window, were nothing ever compacted; at[seq] what it was when
	// seq was the head.
	shown []item
	at    [][]item
	// leaves are the seqs that a rewind can mean.
	leaves   []int
	hostHead int
	epoch    int
	// compacted: summaries may stand for the beginning of the window.
	compacted bool
	keys      []keyed // idempotency keys
	turns     []keyed // advancement keys
}

// keyed is a request that was made under a key.
type keyed struct {
	key  string
	seq  int
	raws []string
}

func newSession(key string) *session {
	return &session{key: key, raws: []string{""}, at: [][]item{nil}, epoch: 1}
}

func (s *session) head() int { return len(s.raws) - 1 }

// message is what an appended message changes.
func (s *session) message(raw string) {
	s.raws = append(s.raws, raw)
	s.shown = append(slices.Clone(s.shown), item{s, s.head(), raw})
	s.at = append(s.at, s.shown)
	s.leaves = append(s.leaves, s.head())
}

// event is what any other event changes, which shows now.
func (s *session) event(shown []item) {
	s.raws = append(s.raws, "")
	s.shown = slices.Clone(shown)
	s.at = append(s.at, s.shown)
}

// leaf is the seq that a rewind to a seq means: that of the newest message.
func (s *session) leaf(to int) int {
	leaf := 0
	for _, l := range s.leaves {
		if l <= to {
			leaf = l
		}
	}
	return leaf
}

// rewound is the window behind a rewind: up to the leaf, where it is shown, so
// that what a reset hid stays hidden; else as it was when the leaf was new.
func (s *session) rewound(to int) []item {
	leaf := s.leaf(to)
	then := s.at[leaf]
	if len(then) == 0 {
		return nil
	}
	if i := slices.Index(s.shown, then[len(then)-1]); i >= 0 {
		return s.shown[:i+1]
	}
	return then
}

// from is what of the window was written here, at a seq or later.
func (s *session) from(seq int) []item {
	var out []item
	for _, i := range s.shown {
		if i.owner == s && i.seq >= seq {
			out = append(out, i)
		}
	}
	return out
}

// forget takes what was inherited from an erased session, or through it, out of
// everything that was shown.
func (s *session) forget(gone *session) {
	without := func(items []item) []item {
		return slices.DeleteFunc(slices.Clone(items), func(i item) bool { return i.owner == gone || gone.descendsFrom(i.owner) })
	}
	s.shown = without(s.shown)
	for seq := range s.at {
		s.at[seq] = without(s.at[seq])
	}
}

func (s *session) descendsFrom(a *session) bool {
	for p := s.parent; p != nil; p = p.parent {
		if p == a {
			return true
		}
	}
	return false
}

func texts(items []item) string {
	var b strings.Builder
	for _, i := range items {
		b.WriteString(i.raw)
		b.WriteByte('\n')
	}
	return b.String()
}
