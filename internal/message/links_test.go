package message_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

func TestLinksSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		ids := rapid.SliceOfN(id, 0, 5)
		want := message.Facts{Calls: ids.Draw(t, "calls"), Results: ids.Draw(t, "results")}
		b := message.EncodeLinks(want)
		if none := len(want.Calls)+len(want.Results) == 0; none != (b == nil) {
			t.Fatalf("EncodeLinks(%v) = %v", want, b)
		}
		calls, results, err := message.DecodeLinks(b)
		if err != nil {
			t.Fatal(err)
		}
		got := message.Facts{Calls: calls, Results: results}
		if len(want.Calls) == 0 {
			want.Calls = nil
		}
		if len(want.Results) == 0 {
			want.Results = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodeLinks(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 1, 'a', 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add(message.EncodeLinks(message.Facts{Calls: []string{"a", "\x00"}, Results: []string{""}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, results, err := message.DecodeLinks(b)
		if err != nil {
			return
		}
		again, results2, err := message.DecodeLinks(message.EncodeLinks(message.Facts{Calls: calls, Results: results}))
		if err != nil || !cmp.Equal(calls, again) || !cmp.Equal(results, results2) {
			t.Fatalf("not stable: %q %q, then %q %q, %v", calls, results, again, results2, err)
		}
	})
}
