package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

// TestFaultsOthersHad retells faults that users of comparable systems
// reported. Each row writes a log and names the seqs of the right window.
func TestFaultsOthersHad(t *testing.T) {
	t.Parallel()
	const plenty = 1 << 20
	tests := []struct {
		name   string
		budget int
		log    func(l *testLog)
		want   []int64
		out    map[int64]Reason
	}{
		{
			name: "ids that start again each turn lose real results", budget: plenty,
			log: func(l *testLog) {
				for range 3 {
					l.user(10)
					l.call(10, "exec_0", "exec_1")
					l.result(10, "exec_0")
					l.result(10, "exec_1")
				}
			},
			want: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
		},
		{
			name: "one id for every call keeps the first result only", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				for range 3 {
					l.call(1, "call_1")
					l.result(1, "call_1")
				}
			},
			want: []int64{1, 2, 3, 4, 5, 6, 7},
		},
		{
			name: "an unanswered call hides behind an answered one of the same id", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "b1")
				l.result(1, "b1")
				l.call(1, "b1")
				l.user(1)
			},
			want: []int64{1, 2, 3, 5},
			out:  map[int64]Reason{4: Unanswered},
		},
		{
			name: "a made-up result stands in though the real one is further down", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "A", "B")
				l.result(1, "A")
				l.user(1)
				l.result(1, "B")
			},
			want: []int64{1, 2, 3, 5, 4},
		},
		{
			name: "a result without its call on the path breaks the window", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.result(1, "elsewhere")
				l.say(1)
			},
			want: []int64{1, 3},
			out:  map[int64]Reason{2: OrphanResult},
		},
		{
			name: "the final result of a long tool is lost behind its interim one", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "c")
				l.result(1, "c")
				l.say(1)
				l.user(1)
				l.result(1, "c")
			},
			want: []int64{1, 2, 6, 4, 5},
			out:  map[int64]Reason{3: Superseded},
		},
		{
			name: "only the last of parallel results survives", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "x", "y", "z")
				l.result(1, "z")
				l.result(1, "x")
				l.result(1, "y")
			},
			want: []int64{1, 2, 4, 5, 3},
		},
		{
			name: "a stale call goes and leaves its reasoning", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(9, "c1")
				l.user(1)
			},
			want: []int64{1, 3},
			out:  map[int64]Reason{2: Unanswered},
		},
		{
			name: "summing up drops the call and keeps its result", budget: 60,
			log: func(l *testLog) {
				l.user(20)
				l.call(20, "c1")
				l.result(20, "c1")
				l.user(20)
				l.say(20)
			},
			want: []int64{4, 5},
			out:  map[int64]Reason{1: Trimmed, 2: Trimmed, 3: Trimmed},
		},
		{
			name: "a cap on the tail evicts the newest user message", budget: 400,
			log: func(l *testLog) {
				l.user(20)
				for range 20 {
					l.call(10, "c")
					l.result(40, "c")
				}
			},
			want: []int64{1, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41},
		},
		{
			name: "tiny budgets act as one token and give nothing", budget: 1,
			log: func(l *testLog) {
				l.user(5)
				l.say(5)
				l.user(7)
			},
			want: []int64{3},
			out:  map[int64]Reason{1: Trimmed, 2: Trimmed},
		},
		{
			name: "an aborted turn of reasoning only bricks the session", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.say(0, message.Hidden, message.Aborted)
				l.user(1)
			},
			want: []int64{1, 3},
			out:  map[int64]Reason{2: HiddenMessage},
		},
		{
			name: "an empty result leaves its call alone", budget: plenty,
			log: func(l *testLog) {
				l.user(0, message.Hidden)
				l.user(1)
				l.call(1, "c")
				l.add(message.Facts{Role: message.Result, Tokens: 1, Results: []string{"c"}})
			},
			want: []int64{2, 3, 4},
			out:  map[int64]Reason{1: HiddenMessage},
		},
		{
			name: "an answer to a call that nobody waits for wedges the chat", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "c")
				l.result(1, "c")
				l.say(1)
				l.result(1, "never")
				l.user(1)
			},
			want: []int64{1, 2, 3, 4, 6},
			out:  map[int64]Reason{5: OrphanResult},
		},
		{
			name: "a heartbeat that did real work is pruned by its text", budget: plenty,
			log: func(l *testLog) {
				l.user(1, message.Heartbeat)
				l.call(1, "c")
				l.result(1, "c")
				l.say(1, message.Heartbeat)
				l.user(1)
			},
			want: []int64{1, 2, 3, 4, 5},
		},
		{
			name: "empty heartbeats fill the window", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.say(1)
				for range 3 {
					l.user(1, message.Heartbeat)
					l.say(1, message.Heartbeat)
				}
			},
			want: []int64{1, 2, 7, 8},
			out:  map[int64]Reason{3: HeartbeatDone, 4: HeartbeatDone, 5: HeartbeatDone, 6: HeartbeatDone},
		},
		{
			name: "a note between a call and its result parts them", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "c")
				l.note(1)
				l.result(1, "c")
			},
			want: []int64{1, 2, 4, 3},
		},
		{
			name: "a note behind an open call reaches the provider before the result", budget: plenty,
			log: func(l *testLog) {
				l.user(1)
				l.call(1, "c")
				l.note(1)
			},
			want: []int64{1, 2},
			out:  map[int64]Reason{3: Held},
		},
		{
			name: "a result that arrives while history is compacted is never seen", budget: 100,
			log: func(l *testLog) {
				l.call(10, "slow")
				l.user(10)
				for range 10 {
					l.say(20)
				}
				l.user(10)
				l.result(10, "slow")
			},
			want: []int64{1, 14, 11, 12, 13},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &testLog{}
			tt.log(l)
			in := l.within(tt.budget)
			p := Build(in)
			if err := check(in, p); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, seqs(p)); diff != "" {
				t.Errorf("window (-want +got):\n%s", diff)
			}
			got := reasons(p)
			for seq, want := range tt.out {
				if got[seq] != want {
					t.Errorf("seq %d: %q, want %q", seq, got[seq], want)
				}
			}
		})
	}
}

func TestResultsTooLargeForTheBudget(t *testing.T) {
	t.Parallel()
	t.Run("several results, each under a limit of its own, overflow together", func(t *testing.T) {
		t.Parallel()
		l := &testLog{}
		l.user(10)
		l.call(10, "a", "b", "c", "d")
		for _, id := range []string{"a", "b", "c", "d"} {
			l.result(15000, id)
		}
		in := l.within(50000)
		p := Build(in)
		if err := check(in, p); err != nil {
			t.Fatal(err)
		}
		if len(p.Items) != 6 || p.Items[2].CutTo != 6250 || p.Over != nil {
			t.Fatalf("got %+v, over %v", p.Items, p.Over)
		}
	})
	t.Run("many parallel results share half of the budget", func(t *testing.T) {
		t.Parallel()
		l := &testLog{}
		l.user(10)
		ids := make([]string, 20)
		for i := range ids {
			ids[i] = string(rune('a' + i))
		}
		l.call(10, ids...)
		for _, id := range ids {
			l.result(20000, id)
		}
		in := l.within(32000)
		if p := Build(in); p.Over != nil || len(p.Items) != 22 || p.Tokens > 16020 {
			t.Fatalf("%d items, %d tokens, over %v", len(p.Items), p.Tokens, p.Over)
		}
	})
	t.Run("how a result is cut depends on it and the budget, not on the room left", func(t *testing.T) {
		t.Parallel()
		cutTo := map[int]bool{}
		for _, before := range []int{0, 1000, 6000} {
			l := &testLog{}
			l.user(before)
			l.call(10, "a")
			l.result(9000, "a")
			in := l.within(8000)
			in.FactorMilli = 1250
			for _, it := range Build(in).Items {
				if it.CutTo > 0 {
					cutTo[it.CutTo] = true
				}
			}
		}
		if diff := cmp.Diff(map[int]bool{800: true}, cutTo); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLargeNoteDoesNotEmptyTheTail(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	for range 20 {
		l.user(50)
		l.say(200)
	}
	note := l.note(30000) // the output of a command that the user ran
	in := l.within(4000)
	p := Build(in)
	if err := check(in, p); err != nil {
		t.Fatal(err)
	}
	last := p.Items[len(p.Items)-1]
	if last.Seq != note || last.CutTo != 500 || p.Tokens < 2000 {
		t.Fatalf("%d items of %d tokens, the last %+v", len(p.Items), p.Tokens, last)
	}
}

func TestOverBudgetNamesWhatCouldNotFit(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	l.user(300)
	l.say(100)
	l.user(500)
	l.call(50, "a")
	in := l.within(200)
	in.Summaries = []Summary{{Seq: 99, Tokens: 20, Level: 1}}
	p := Build(in)
	if err := check(in, p); err != nil {
		t.Fatal(err)
	}
	if p.Over == nil || p.Over.Needed != 550 || len(p.Over.Items) != 2 || p.Over.Items[0].Seq != 3 {
		t.Fatalf("over = %+v", p.Over)
	}
	if diff := cmp.Diff([]int64{3, 4}, seqs(p)); diff != "" {
		t.Fatal(diff)
	}
}

func TestSummariesLeaveLowestLevelAndOldestFirst(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	for range 20 {
		l.user(50)
		l.say(50)
	}
	in := l.within(1000)
	in.Summaries = []Summary{
		{Seq: 101, Tokens: 200, Level: 2},
		{Seq: 102, Tokens: 150, Level: 1},
		{Seq: 103, Tokens: 100, Level: 1},
	}
	p := Build(in)
	if err := check(in, p); err != nil {
		t.Fatal(err)
	}
	if got := reasons(p)[102]; got != SummaryNoRoom {
		t.Errorf("102: %v", got)
	}
	if got := seqs(p)[:2]; got[0] != -101 || got[1] != -103 {
		t.Errorf("window begins with %v", got)
	}
	if p.Tokens < 800 {
		t.Errorf("%d of 1000 tokens used", p.Tokens)
	}
}

// A summary made for a large budget has no room in a small one; its share does
// not count as used.
func TestSummaryWithoutRoomLeavesHalfOfTheBudgetInUse(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	for range 60 {
		l.user(50)
		l.say(50)
	}
	for budget := 400; budget < 6000; budget += 10 {
		in := l.within(budget)
		in.Summaries = []Summary{{Seq: 1001, Tokens: 1500, Level: 1}, {Seq: 1002, Tokens: 1400, Level: 1}}
		p := Build(in)
		if err := check(in, p); err != nil {
			t.Fatal(err)
		}
		if 2*p.Tokens < budget {
			t.Fatalf("%d of %d tokens used, %d summaries shown", p.Tokens, budget, len(p.Summaries))
		}
	}
}

func TestAnthropicWindowBeginsWithTheUser(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	l.say(10)
	l.user(10)
	l.say(10)
	in := l.input()
	in.Dialect = message.Anthropic
	p := Build(in)
	if diff := cmp.Diff([]int64{2, 3}, seqs(p)); diff != "" {
		t.Error(diff)
	}
	if reasons(p)[1] != Leading || p.TrimFrom != 0 || p.EpochLabel != "1" {
		t.Errorf("1 is %v, label %s", reasons(p)[1], p.EpochLabel)
	}
	in.Summaries = []Summary{{Seq: 50, Tokens: 10, Level: 1}}
	if diff := cmp.Diff([]int64{-50, 1, 2, 3}, seqs(Build(in))); diff != "" {
		t.Error(diff)
	}
}
