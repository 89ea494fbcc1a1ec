package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// kind is what a session is used for.
type kind int

const (
	_ kind = iota // it is spoken to and nothing else
	// steps: it is also reset, rewound and its compactions are undone.
	steps
	// leased: its writes carry leases.
	leased
	// recorded: what a real agent said, turn by turn.
	recorded
	// mirrored: a host's transcript is synced to it, page by page.
	mirrored
	kinds
)

// session is one conversation. It lives for a few cycles.
type session struct {
	key  string
	kind kind
	// mark is in every message of it, and in no other session's.
	mark string
	born int
	// doomed: it is erased under load. No call of it names a host session, which
	// could open the next one under its key.
	doomed bool

	made atomic.Int64 // numbers its messages

	// erasing is set before its erasure is asked for.
	erasing atomic.Bool

	busy sync.Mutex // held by the one who syncs its transcript, or speaks its recording
	// entries are the host's transcript, sent those that were acknowledged.
	entries []string
	sent    int
	// script are the turns left of a recording.
	script [][][]byte

	mu      sync.Mutex
	ops     []op
	head    int64 // of the host, as last told
	watched *watcher
}

func (s *session) record(o op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = append(s.ops, o)
}

func (s *session) history() []op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op{}, s.ops...)
}

// markOf is a session's mark: of a form that is found wherever it is left.
func markOf(key string) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return fmt.Sprintf("mark-%08x", h.Sum32())
}

func (r *run) newSession(k kind, cycle, n int) *session {
	s := &session{key: fmt.Sprintf("agent:main:chaos:%d:%d", cycle, n), kind: k, born: cycle}
	s.mark = markOf(fmt.Sprint(r.seed, s.key))
	if k == recorded {
		s.script = r.recordings[cycle%len(r.recordings)]
	}
	return s
}

// recordings are the turns of real runs of an agent with tools.
func recordings(t *testing.T) [][][][]byte {
	t.Helper()
	raw, err := os.ReadFile("../transcripts/testdata/tau-bench/three-runs.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct{ Traj []json.RawMessage }
	if err := json.Unmarshal(raw, &runs); err != nil {
		t.Fatal(err)
	}
	var out [][][][]byte
	for _, run := range runs {
		var turns [][][]byte
		for _, m := range run.Traj {
			var is struct {
				Role    string
				Content *string
				Calls   []json.RawMessage `json:"tool_calls"`
			}
			if err := json.Unmarshal(m, &is); err != nil {
				t.Fatal(err)
			}
			switch is.Role {
			case "system":
				continue
			case "user":
				turns = append(turns, nil)
			}
			if n := len(turns); n > 0 {
				turns[n-1] = append(turns[n-1], m)
			}
		}
		// The last turn of a run may end within a call.
		out = append(out, turns[:len(turns)-1])
	}
	return out
}

// stamped is a recorded message with a name of its own in front.
func (s *session) stamped(m []byte) []byte {
	return fmt.Appendf(nil, `{"chaos":"%s %d",%s`, s.mark, s.made.Add(1), m[1:])
}
