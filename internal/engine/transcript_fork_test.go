package engine_test

import (
	"slices"
	"strings"
	"testing"
)

// TestAForksTranscriptBringsOnlyWhatIsItsOwn: a host copies the parent's entries,
// ids and all, into the transcript of a fork.
func TestAForksTranscriptBringsOnlyWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.lane("p", "g", "s1")
	parent.sync(entry("1", "", user("a")), entry("2", "1", assistant("b")), entry("3", "2", user("c")), entry("4", "3", assistant("d")))
	shown := b.window("p", 10_000)
	b.fork("p", "f")
	fork := b.lane("f", "g", "s2")
	res := fork.sync(append(parent.log[:4:4], entry("5", "4", user("e")), entry("6", "5", assistant("f")))...)
	if res.Stored != 2 || res.Duplicates != 4 {
		t.Errorf("%+v", res)
	}
	want := text(shown) + "\n" + user("e") + "\n" + assistant("f")
	if got := text(b.window("f", 10_000)); got != want {
		t.Errorf("%s", got)
	}
	if again := fork.page(0, 6); again.Stored != 0 {
		t.Errorf("sent again: %+v", again)
	}
	// A rewind within the fork's own part keeps what was inherited.
	fork.sync(`{"type":"leaf","id":"7","parentId":"6","targetId":"5"}`, entry("8", "5", assistant("another")))
	want = text(shown) + "\n" + user("e") + "\n" + assistant("another")
	if got := text(b.window("f", 10_000)); got != want {
		t.Errorf("after a rewind: %s", got)
	}
	fork.sync(`{"type":"reset","id":"9","parentId":"8","reason":"new"}`, entry("10", "9", user("anew")))
	if got := text(b.window("f", 10_000)); strings.Contains(got, `"a"`) || !strings.HasSuffix(got, user("anew")) {
		t.Errorf("after a reset: %s", got)
	}
}

// What only a turn brought to the parent is known by the turn's anchors, and a
// fork's transcript may go back to what was inherited.
func TestAForksTranscriptKnowsTheParentsTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.lane("p", "g", "s1")
	parent.sync(entry("1", "", says("user", "a")), entry("2", "1", says("assistant", "b")))
	parent.commit("t", "3", "5", says("user", "c"), says("assistant", "d"), says("assistant", "e"))
	b.fork("p", "f")
	fork := b.lane("f", "g", "s2")
	log := slices.Concat(parent.log[:2], []string{entry("3", "2", says("user", "c")), entry("4", "3", says("assistant", "d")), entry("5", "4", says("assistant", "e"))})
	if res := fork.sync(append(log, entry("6", "5", says("user", "f")))...); res.Stored != 1 {
		t.Errorf("%+v", res)
	}
	b.want("f", "a b c d e f")
	again := b.lane("f", "g", "s3")
	again.log = append(again.log, fork.log...)
	if res := again.sync(`{"type":"leaf","id":"l","parentId":"6","targetId":"2"}`, entry("7", "2", says("user", "g"))); res.Stored != 2 {
		t.Errorf("%+v", res)
	}
	b.want("f", "a b g")
	again.sync(`{"type":"leaf","id":"l2","parentId":"7","targetId":"6"}`)
	b.want("f", "a b c d e f")
	b.want("p", "a b c d e")
}
