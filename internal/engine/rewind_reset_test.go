package engine_test

import "testing"

// TestARewindKeepsWhatAResetHid: a message that was written behind a reset
// comes back, from another branch, with the window that it had.
func TestARewindKeepsWhatAResetHid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, m := range []string{"m1", "m2", "m3"} {
		b.ingest("k", says("user", m))
	}
	keep := int64(2)
	if _, err := b.Reset(t.Context(), on("k"), &keep, ""); err != nil {
		t.Fatal(err)
	}
	b.ingest("k", says("user", "m5"))
	b.want("k", "m2 m3 m5")
	if _, err := b.Rewind(t.Context(), on("k"), 1); err != nil {
		t.Fatal(err)
	}
	b.want("k", "m1")
	b.ingest("k", says("user", "m7"))
	b.want("k", "m1 m7")
	if _, err := b.Rewind(t.Context(), on("k"), 5); err != nil {
		t.Fatal(err)
	}
	b.want("k", "m2 m3 m5")
}
