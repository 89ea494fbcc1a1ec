package audit_test

import (
	"strings"
	"testing"

	"github.com/engined/engined/test/faults/audit"
)

func message(seq int64, text string) audit.Row {
	return audit.Row{Seq: seq, Type: "message.appended", Epoch: 1, Message: []byte(text)}
}

func event(seq int64, kind string, epoch int64, data string) audit.Row {
	return audit.Row{Seq: seq, Type: kind, Epoch: epoch, Data: []byte(data)}
}

// good is a history and the log that it should leave.
func good() (*audit.Recorder, []audit.Row) {
	r := audit.NewRecorder()
	r.Begin("s", audit.Ingest, []byte("a")).Ack(1)
	r.Begin("s", audit.Batch, []byte("b"), []byte("c")).Ack(2, 3)
	r.Begin("s", audit.Commit, []byte("d"), []byte("e")).Ack()
	r.Begin("s", audit.Ingest, []byte("never arrived"))
	r.Begin("s", audit.Ingest, []byte("refused")).Refuse()
	r.Begin("s", audit.After, []byte("f")) // its answer was lost
	return r, []audit.Row{
		message(1, "a"), message(2, "b"), message(3, "c"), message(4, "d"), message(5, "e"),
		event(6, "turn.committed", 1, "{}"), event(7, "turn.completed", 1, "{}"),
		event(8, "summary.created", 1, `{"sources":[{"from":1,"to":3}]}`),
		event(9, "epoch.rotated", 1, `{"base":1,"epoch":2}`),
		{Seq: 10, Type: "message.appended", Epoch: 2, Message: []byte("f")},
		event(11, "turn.completed", 2, "{}"),
	}
}

func TestAKeptPromiseIsNoFinding(t *testing.T) {
	t.Parallel()
	if got := audit.Check(first(good())); len(got) > 0 {
		t.Errorf("findings in a good log: %v", got)
	}
}

// TestWindowsMayMove: a reset or a rewind is a step, behind which the same
// messages may be summarized again.
func TestWindowsMayMove(t *testing.T) {
	t.Parallel()
	r, log := good()
	log = append(log, event(12, "leaf.moved", 2, `{"to":3}`), event(13, "summary.created", 3, `{"sources":[{"from":1,"to":3}]}`),
		event(14, "epoch.rotated", 3, `{"base":3,"epoch":4,"cause":"compaction"}`), event(15, "session.reset", 4, `{}`))
	if got := audit.Check(r, "s", log); len(got) > 0 {
		t.Errorf("findings in a good log: %v", got)
	}
	log[12].Epoch = 2
	if got := audit.Check(r, "s", log); len(got) == 0 {
		t.Error("an epoch that a rewind ended goes on")
	}
}

func first(r *audit.Recorder, log []audit.Row) (*audit.Recorder, string, []audit.Row) {
	return r, "s", log
}

func TestEveryBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, want string
		spoil      func(log []audit.Row) []audit.Row
	}{
		{"lost", "acknowledged and lost", func(l []audit.Row) []audit.Row { l[0].Message = []byte("never arrived"); return l }},
		{"bytes changed", "written by nobody: a ", func(l []audit.Row) []audit.Row { l[0].Message = []byte("a "); return l }},
		{"written by nobody", "written by nobody", func(l []audit.Row) []audit.Row { return append(l, next(l, "x")) }},
		{"doubled", "is there again", func(l []audit.Row) []audit.Row { return append(l, next(l, "a")) }},
		{"gap", "where 3 belongs", func(l []audit.Row) []audit.Row { l[2].Seq = 4; return l }},
		{"refused and stored", "refused and yet stored", func(l []audit.Row) []audit.Row { return append(l, next(l, "refused")) }},
		{"half a batch", "1 of 2 messages", func(l []audit.Row) []audit.Row { l[2].Message = []byte("never arrived"); return l }},
		{"torn turn", "not contiguous", func(l []audit.Row) []audit.Row {
			l[3].Message, l[4] = []byte("d"), message(5, "never arrived")
			return append(l, next(l, "e"))
		}},
		{"another seq", "acknowledged at seq", func(l []audit.Row) []audit.Row {
			l[0], l[9] = message(1, "f"), audit.Row{Seq: 10, Type: "message.appended", Epoch: 2, Message: []byte("a")}
			return l
		}},
		{"out of order", "stands before it", func(l []audit.Row) []audit.Row {
			l[0].Message, l[9].Message = l[9].Message, l[0].Message
			return l
		}},
		{"turn without its end", "is followed by", func(l []audit.Row) []audit.Row { l[6].Type = "turn.committed"; return l }},
		{"epoch skipped", "steps from epoch", func(l []audit.Row) []audit.Row { l[8].Data = []byte(`{"base":1,"epoch":3}`); return l }},
		{"epoch twice", "steps from epoch 1 to 2 within epoch 2", func(l []audit.Row) []audit.Row {
			return append(l, event(12, "epoch.rotated", 2, `{"base":1,"epoch":2}`))
		}},
		{"summary twice", "cover the same", func(l []audit.Row) []audit.Row {
			return append(l, event(12, "summary.created", 2, `{"sources":[{"from":1,"to":3}]}`), event(13, "epoch.rotated", 2, `{"base":2,"epoch":3}`))
		}},
		{"summary without step", "without their step", func(l []audit.Row) []audit.Row {
			return append(l, event(12, "summary.created", 2, `{"sources":[{"from":4,"to":5}]}`))
		}},
		{"message within a step", "between summaries and their step", func(l []audit.Row) []audit.Row {
			l[8] = message(9, "never arrived")
			return l
		}},
		{"stale epoch", "is of epoch 1 within epoch 2", func(l []audit.Row) []audit.Row { l[10].Epoch = 1; return l }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, log := good()
			got := strings.Join(audit.Check(r, "s", tc.spoil(log)), "\n")
			if !strings.Contains(got, tc.want) {
				t.Errorf("not found: %q\nfindings: %s", tc.want, got)
			}
		})
	}
}

func next(log []audit.Row, text string) audit.Row {
	m := message(int64(len(log))+1, text)
	m.Epoch = 2
	return m
}
