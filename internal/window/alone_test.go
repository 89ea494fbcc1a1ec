package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

// words adds a message of tool results and words of the user.
func (l *testLog) words(ids ...string) int64 {
	return l.add(message.Facts{
		Role: message.Result, Tokens: 10, Results: ids, Flags: message.Cuttable | message.UserText,
	})
}

func TestWordsBesideResultsThatCannotBeShown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		log   func(l *testLog)
		shown []int64
		alone []int64
		held  []int64
	}{
		{"orphan, newest", func(l *testLog) { l.user(1); l.say(1); l.words("other") }, []int64{1, 2, 3}, []int64{3}, nil},
		{"orphan, older", func(l *testLog) { l.user(1); l.say(1); l.words("other"); l.say(1) }, []int64{1, 2, 3, 4}, []int64{3}, nil},
		{"answers its call", func(l *testLog) { l.user(1); l.call(1, "a"); l.words("a") }, []int64{1, 2, 3}, nil, nil},
		{
			"orphan behind an open call, which it ends",
			func(l *testLog) { l.user(1); l.call(1, "a"); l.words("other") },
			[]int64{1, 3},
			[]int64{3},
			nil,
		},
		{
			"a newer result took its place",
			func(l *testLog) { l.user(1); l.call(1, "a"); l.words("a"); l.result(1, "a"); l.say(1) },
			[]int64{1, 2, 4, 3, 5},
			[]int64{3},
			nil,
		},
		{
			"the same, and another call is open",
			func(l *testLog) { l.user(1); l.call(1, "a", "b"); l.words("a"); l.result(1, "a") },
			[]int64{1, 2, 4},
			nil,
			[]int64{3},
		},
		{
			"its call is given up",
			func(l *testLog) { l.user(1); l.call(1, "a", "b"); l.words("a"); l.user(1) },
			[]int64{1, 3, 4},
			[]int64{3},
			nil,
		},
		{
			"and gets its last result late",
			func(l *testLog) { l.user(1); l.call(1, "a", "b"); l.words("a"); l.user(1); l.result(1, "b") },
			[]int64{1, 2, 5, 3, 4},
			nil, nil,
		},
		{
			"late for one call while a later one is open",
			func(l *testLog) { l.user(1); l.call(1, "a", "b"); l.call(1, "c"); l.words("a") },
			[]int64{1, 3},
			nil,
			[]int64{4},
		},
		{
			"and that one is answered",
			func(l *testLog) { l.user(1); l.call(1, "a", "b"); l.call(1, "c"); l.words("a"); l.result(1, "c") },
			[]int64{1, 3, 5, 4},
			[]int64{4},
			nil,
		},
		{"begins the session", func(l *testLog) { l.words("other"); l.say(1) }, []int64{1, 2}, []int64{1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &testLog{}
			tt.log(l)
			in := l.input()
			in.Dialect = message.Anthropic
			p := Build(in)
			if err := check(in, p); err != nil {
				t.Error(err)
			}
			var alone, held []int64
			for _, it := range p.Items {
				if it.WithoutResults {
					alone = append(alone, it.Seq)
				}
			}
			for _, lo := range p.LeftOut {
				if lo.Reason == Held {
					held = append(held, lo.Seq)
				}
			}
			for _, c := range []struct {
				what      string
				got, want []int64
			}{{"shown", seqs(p), tt.shown}, {"alone", alone, tt.alone}, {"held", held, tt.held}} {
				if diff := cmp.Diff(c.want, c.got); diff != "" {
					t.Errorf("%s:\n%s", c.what, diff)
				}
			}
		})
	}
}

func TestTheNewestWordsAreShownWhateverTheBudget(t *testing.T) {
	t.Parallel()
	l := &testLog{}
	l.user(50)
	l.say(50)
	l.words("other")
	l.say(50)
	p := Build(l.within(20))
	if len(p.Items) != 1 || p.Items[0].Seq != 3 || p.Items[0].Reason != NewestUser {
		t.Errorf("shown: %+v", p.Items)
	}
}

func TestWordsAreRenderedWithoutResults(t *testing.T) {
	t.Parallel()
	bodies := map[int64][]byte{
		1: []byte(`{"role":"user","content":"go"}`),
		2: []byte(`{"role":"assistant","content":"ok"}`),
		3: []byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"OTHER","content":"x"}, {"type":"text","text":"KEEPME"}]}`),
	}
	l := &testLog{}
	for seq := int64(1); seq <= 3; seq++ {
		m, err := message.Read(bodies[seq])
		if err != nil {
			t.Fatal(err)
		}
		l.add(m.Facts(roughlyMessage))
	}
	in := l.input()
	in.Dialect = message.Anthropic
	got, err := Build(in).Render(Source{Bodies: bodies, Estimate: roughly})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"role":"user","content":[{"type":"text","text":"KEEPME"}]}`; len(got) != 3 || string(got[2]) != want {
		t.Errorf("got %s", got)
	}
}
