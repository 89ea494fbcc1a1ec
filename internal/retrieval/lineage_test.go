package retrieval_test

import (
	"fmt"
	"testing"

	"github.com/engined/engined/internal/retrieval"
)

// However often a conversation was forked or begun anew under its key, its
// early words are found from its tip.
func TestAnEarlyWordIsFoundFromTheTip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("s0", "earlymarker")
	tip := "s0"
	for i := range 10 {
		next := fmt.Sprint("s", i+1)
		if _, err := b.engine.Fork(t.Context(), on("t", tip), next, nil); err != nil {
			t.Fatal(err)
		}
		tip = next
		if i%2 == 0 {
			b.say(tip, fmt.Sprint("word", i)) // the others stay empty
		}
	}
	b.want(retrieval.Request{Query: "earlymarker", SessionKey: tip}, "s0/1")
	for range 10 {
		if _, err := b.engine.Reset(t.Context(), on("t", tip), nil, "new"); err != nil {
			t.Fatal(err)
		}
	}
	b.say(tip, "anew")
	b.want(retrieval.Request{Query: "earlymarker", SessionKey: tip}, "s0/1")
	b.want(retrieval.Request{Query: "earlymarker"}, "s0/1")
}
