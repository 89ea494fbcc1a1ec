package audit

import (
	"slices"
	"sync"
)

// Kind is the call that a write went through.
type Kind string

// The calls that write messages.
const (
	Ingest Kind = "ingest"
	Batch  Kind = "ingest-batch"
	Commit Kind = "commit-turn"
	After  Kind = "after-turn"
	// Transcript is a page of a host's transcript.
	Transcript Kind = "transcript"
)

// State is what a client knows of a write.
type State int

// What a client knows.
const (
	// Unknown: no answer came; the write happened wholly or not at all.
	Unknown State = iota
	// Acked: the service said that it is stored.
	Acked
	// Refused: the service said that it is not and will not be stored, or the
	// call never reached it.
	Refused
)

// Write is one request, however often it was sent.
type Write struct {
	Session  string
	Kind     Kind
	Messages [][]byte

	rec        *Recorder
	state      State
	seqs       []int64
	begun, end uint64 // ticks of the recorder
}

// Recorder notes writes. Its methods may be called at the same time.
type Recorder struct {
	mu     sync.Mutex
	tick   uint64
	writes []*Write
	// owed is, by session, the highest epoch in which a turn was told that a
	// compaction follows.
	owed map[string]int64
}

// NewRecorder makes an empty recorder.
func NewRecorder() *Recorder { return &Recorder{owed: make(map[string]int64)} }

// Begin notes a write before it is sent for the first time.
func (r *Recorder) Begin(session string, kind Kind, messages ...[]byte) *Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tick++
	w := &Write{Session: session, Kind: kind, Messages: messages, rec: r, begun: r.tick}
	r.writes = append(r.writes, w)
	return w
}

// Ack notes that the write was acknowledged, with the seqs of its messages
// where the answer told them.
func (w *Write) Ack(seqs ...int64) { w.finish(Acked, seqs) }

// Refuse notes that the write must not be in the log.
func (w *Write) Refuse() { w.finish(Refused, nil) }

func (w *Write) finish(s State, seqs []int64) {
	w.rec.mu.Lock()
	defer w.rec.mu.Unlock()
	w.rec.tick++
	w.state, w.seqs, w.end = s, slices.Clone(seqs), w.rec.tick
}

// State is what its client knows of the write by now.
func (w *Write) State() State {
	w.rec.mu.Lock()
	defer w.rec.mu.Unlock()
	return w.state
}

// Owes notes that an answer said a compaction of the session follows.
func (r *Recorder) Owes(session string, epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed[session] = max(r.owed[session], epoch)
}

// Owed returns the highest epoch in which a session was told to owe a
// compaction; 0 when it never was. Its epoch must come to be higher.
func (r *Recorder) Owed(session string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owed[session]
}

// Acked tells whether a write to a session was acknowledged.
func (r *Recorder) Acked(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.writes, func(w *Write) bool { return w.Session == session && w.state == Acked })
}

// Sessions lists the sessions that were written to.
func (r *Recorder) Sessions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, w := range r.writes {
		out = append(out, w.Session)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Count tells how many writes stand in a state.
func (r *Recorder) Count(s State) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, w := range r.writes {
		if w.state == s {
			n++
		}
	}
	return n
}

// of returns copies of a session's writes, in the order of their beginning.
func (r *Recorder) of(session string) []Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Write
	for _, w := range r.writes {
		if w.Session == session {
			out = append(out, *w)
		}
	}
	return out
}
