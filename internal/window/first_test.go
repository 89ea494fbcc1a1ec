package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

func TestAnAnthropicWindowBeginsWithTheUser(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		log     func(l *testLog)
		shown   []int64
		leading []int64
	}{
		{"assistant first", func(l *testLog) { l.say(1); l.say(1); l.user(1); l.say(1) }, []int64{3, 4}, []int64{1, 2}},
		{"no user at all", func(l *testLog) { l.say(1); l.say(1) }, []int64{}, []int64{1, 2}},
		{
			"calls and no user", func(l *testLog) { l.call(1, "a"); l.result(1, "a"); l.say(1) },
			[]int64{},
			[]int64{1, 2, 3},
		},
		{
			"a turn under way and no user", func(l *testLog) { l.say(1); l.call(1, "a"); l.result(1, "a") },
			[]int64{0, 1, 2, 3},
			nil,
		},
		{"an open call and no user", func(l *testLog) { l.call(1, "a") }, []int64{0, 1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &testLog{}
			tt.log(l)
			for _, budget := range []int{1, 2, 100} {
				in := l.within(budget)
				in.Dialect = message.Anthropic
				p := Build(in)
				if err := check(in, p); err != nil {
					t.Errorf("budget %d: %v", budget, err)
				}
				var leading []int64
				for _, lo := range p.LeftOut {
					if lo.Reason == Leading {
						leading = append(leading, lo.Seq)
					}
				}
				if diff := cmp.Diff(tt.leading, leading); diff != "" {
					t.Errorf("budget %d, left out in front:\n%s", budget, diff)
				}
				if diff := cmp.Diff(tt.shown, seqs(p)); budget == 100 && diff != "" {
					t.Errorf("shown:\n%s", diff)
				}
			}
			in := l.input()
			in.Dialect = message.OpenAI
			if p := Build(in); len(p.Items) != len(l.entries) {
				t.Errorf("another dialect shows %v", seqs(p))
			}
		})
	}
}

// What a reset kept is the inside of a turn: providers refuse a window that
// begins with a model's call, so the engine says a word before it.
func TestANoticeBeginsAWindowThatNoUserBegins(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	l.call(1, "a")
	l.result(1, "a")
	in := l.input()
	in.Dialect = message.Anthropic
	bodies := map[int64][]byte{1: []byte(`{"role":"assistant"}`), 2: []byte(`{"role":"user"}`)}
	under := Build(in)
	msgs, err := under.Render(Source{Bodies: bodies})
	if err != nil {
		t.Fatal(err)
	}
	first, err := message.Read(msgs[0])
	if err != nil || first.Role != message.User || len(msgs) != 3 {
		t.Fatalf("the window is %s: %v", msgs, err)
	}
	if n := tokens.Message(first); n != under.Items[0].Tokens || under.Tokens != n+in.Entries[0].Tokens+in.Entries[1].Tokens {
		t.Errorf("the notice of %d tokens is counted as %+v, the window as %d", n, under.Items[0], under.Tokens)
	}

	in.Budget = under.Tokens - 1
	if p := Build(in); p.Over == nil || p.Over.Needed != under.Tokens {
		t.Errorf("one token short: %+v", p.Over)
	}
	in.Budget = under.Tokens
	if p := Build(in); p.Over != nil {
		t.Errorf("just enough: %+v", p.Over)
	}

	// The turn goes on behind what was shown.
	in.Budget = 1000
	before := Build(in)
	l.call(1, "b")
	in.Entries = l.input().Entries
	after := Build(in)
	if diff := cmp.Diff([]int64{0, 1, 2, 3}, seqs(after)); diff != "" || after.Fingerprint != before.Fingerprint {
		t.Errorf("the turn has gone on, fingerprint %s, before %s:\n%s", after.Fingerprint, before.Fingerprint, diff)
	}
	l.user(1)
	in.Entries = l.input().Entries
	last := Build(in)
	if diff := cmp.Diff([]int64{4}, seqs(last)); diff != "" || last.Fingerprint == after.Fingerprint {
		t.Errorf("a user speaks, fingerprint %s, before %s:\n%s", last.Fingerprint, after.Fingerprint, diff)
	}
}
