package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
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
			[]int64{2, 3},
			[]int64{1},
		},
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
