package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/engined/engined/test/faults/audit"
)

// opKind is how a call is held against the log.
type opKind int

const (
	opWrite opKind = iota
	opRead         // told a head and an epoch
	opStep         // moved the window and told the head behind it
	opStale        // refused, for the host's head was another one
)

// op is one answered call on a session, with the times around it.
type op struct {
	kind      opKind
	write     *audit.Write
	expected  int64 // a write's expected head, -1 where it has none
	head      int64
	epoch     int64
	call, ret int64
}

// history is a session's log as the order in which things must have happened.
type history struct {
	key string
	// hosts are the seqs of messages, ends the epochs behind each seq.
	hosts  []int64
	epochs []int64
	at     map[string]int64
}

func newHistory(key string, log []audit.Row) *history {
	h := &history{key: key, at: make(map[string]int64, len(log)), epochs: []int64{1}}
	for i, row := range log {
		if row.Message != nil {
			h.hosts = append(h.hosts, row.Seq)
			h.at[string(row.Message)] = row.Seq
		}
		epoch := row.Epoch
		if i+1 < len(log) {
			epoch = log[i+1].Epoch
		}
		h.epochs = append(h.epochs, epoch)
	}
	if n := len(log); n > 0 {
		switch log[n-1].Type {
		case "epoch.rotated", "session.reset", "leaf.moved", "ancestor.erased":
			h.epochs[n]++
		}
	}
	return h
}

// between is how many messages stand behind from, up to to.
func (h *history) between(from, to int64) int {
	i, _ := slices.BinarySearch(h.hosts, from+1)
	j, _ := slices.BinarySearch(h.hosts, to+1)
	return j - i
}

// legal tells whether an operation can happen when the log has come to seq, and
// how far it has come then. What the engine writes may come at any time; what
// clients write must come with their calls.
func (h *history) legal(seq int64, o op) (bool, int64) {
	switch o.kind {
	case opWrite:
		ms := o.write.Messages
		first, last := h.at[string(ms[0])], h.at[string(ms[len(ms)-1])]
		if first == 0 || first <= seq || h.between(seq, first-1) > 0 || o.expected > 0 && h.between(o.expected, first-1) > 0 {
			return false, seq
		}
		return true, last
	case opStep:
		return o.head > seq && h.between(seq, o.head) == 0, o.head
	case opStale:
		if o.head == o.expected {
			return false, seq
		}
		low, high := min(seq, o.head), max(seq, o.head)
		return h.between(low, high) == 0, high
	}
	return o.head >= seq && h.between(seq, o.head) == 0, max(seq, o.head)
}

// input is what porcupine is given of an operation.
type input struct {
	of *history
	op op
}

var model = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := make(map[string][]porcupine.Operation)
		for _, o := range all {
			key := o.Input.(input).of.key
			by[key] = append(by[key], o)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return int64(0) },
	Step: func(state, in, _ any) (bool, any) {
		i := in.(input)
		return i.of.legal(state.(int64), i.op)
	},
}

// linearizable tells what is wrong with the order of a session's calls.
func linearizable(h *history, ops []op) []string {
	var broken []string
	var in []porcupine.Operation
	for i, o := range ops {
		if o.kind == opRead && o.head < int64(len(h.epochs)) && h.epochs[o.head] != o.epoch {
			broken = append(broken, fmt.Sprintf("%s: told epoch %d at head %d, the log says %d", h.key, o.epoch, o.head, h.epochs[o.head]))
		}
		in = append(in, porcupine.Operation{ClientId: i, Input: input{h, o}, Call: o.call, Return: o.ret})
	}
	switch porcupine.CheckOperationsTimeout(model, in, 20*time.Second) {
	case porcupine.Illegal:
		broken = append(broken, fmt.Sprintf("%s: the history of %d calls has no order that explains it", h.key, len(in)))
	case porcupine.Unknown:
		broken = append(broken, fmt.Sprintf("%s: no order of %d calls found in time", h.key, len(in)))
	}
	return broken
}

// TestAHistoryThatCannotBe plants answers that no order explains.
func TestAHistoryThatCannotBe(t *testing.T) {
	t.Parallel()
	rec := audit.NewRecorder()
	a, b := rec.Begin("s", audit.Ingest, []byte("a")), rec.Begin("s", audit.Ingest, []byte("b"))
	h := newHistory("s", []audit.Row{
		{Seq: 1, Type: "message.appended", Epoch: 1, Message: []byte("a")},
		{Seq: 2, Type: "epoch.rotated", Epoch: 1},
		{Seq: 3, Type: "message.appended", Epoch: 2, Message: []byte("b")},
	})
	write := func(w *audit.Write, call, ret int64) op {
		return op{kind: opWrite, write: w, expected: -1, call: call, ret: ret}
	}
	good := []op{
		write(a, 0, 5),
		{kind: opRead, head: 0, epoch: 1, call: 1, ret: 3},
		write(b, 10, 20),
		{kind: opRead, head: 2, epoch: 2, call: 11, ret: 19},
		{kind: opRead, head: 3, epoch: 2, call: 12, ret: 15},
		{kind: opStale, expected: 1, head: 3, call: 16, ret: 18},
	}
	if got := linearizable(h, good); len(got) > 0 {
		t.Errorf("a good history: %v", got)
	}
	for name, bad := range map[string]op{
		"a stale read":               {kind: opRead, head: 2, epoch: 2, call: 30, ret: 31},
		"a read ahead of its write":  {kind: opRead, head: 3, epoch: 2, call: 6, ret: 7},
		"another epoch":              {kind: opRead, head: 3, epoch: 1, call: 30, ret: 31},
		"refused for what it said":   {kind: opStale, expected: 3, head: 3, call: 30, ret: 31},
		"a step that was overtaken":  {kind: opStep, head: 2, call: 30, ret: 31},
		"a write that stands before": write(a, 30, 31),
	} {
		if got := linearizable(h, append(slices.Clone(good[1:]), bad)); name == "a write that stands before" && len(got) == 0 {
			t.Errorf("not found: %s", name)
		} else if name != "a write that stands before" {
			if got = linearizable(h, append(slices.Clone(good), bad)); len(got) == 0 {
				t.Errorf("not found: %s", name)
			}
		}
	}
}
