package hostlog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/hostlog"
)

func tree(nodes ...hostlog.Node) *hostlog.Tree {
	t := hostlog.NewTree()
	for _, n := range nodes {
		t.Add(n)
	}
	return t
}

func msg(id, parent string, place int64) hostlog.Node {
	return hostlog.Node{ID: id, Parent: parent, Kind: hostlog.Message, Type: "message", Place: place}
}

func TestPath(t *testing.T) {
	t.Parallel()
	base := []hostlog.Node{msg("a", "", 1), msg("b", "a", 2), msg("c", "b", 3)}
	with := func(more ...hostlog.Node) *hostlog.Tree { return tree(append(base[:3:3], more...)...) }
	reset := func(kept string) hostlog.Node {
		return hostlog.Node{ID: "r", Parent: "c", Kind: hostlog.Reset, Type: "reset", FirstKept: kept, Place: 4}
	}
	for name, c := range map[string]struct {
		tree *hostlog.Tree
		leaf string
		want []int64
	}{
		"the whole":          {with(), "c", []int64{1, 2, 3}},
		"an earlier leaf":    {with(), "b", []int64{1, 2}},
		"before everything":  {with(), "", nil},
		"an unknown leaf":    {with(), "x", nil},
		"a branch":           {with(msg("d", "a", 5)), "d", []int64{1, 5}},
		"a record between":   {with(hostlog.Node{ID: "m", Parent: "c", Type: "model_change"}, msg("d", "m", 6)), "d", []int64{1, 2, 3, 6}},
		"a leaf move":        {with(hostlog.Node{ID: "l", Parent: "a", Kind: hostlog.Leaf, Type: "leaf"}), "l", []int64{1}},
		"a reset":            {with(reset(""), msg("d", "r", 5)), "d", []int64{5}},
		"before the reset":   {with(reset(""), msg("d", "r", 5)), "b", []int64{1, 2}},
		"a reset that keeps": {with(reset("b"), msg("d", "r", 5)), "d", []int64{2, 3, 5}},
		"a reset that keeps what is not behind it": {with(reset("x"), msg("d", "r", 5)), "d", []int64{5}},
		"a cycle":                  {tree(msg("a", "b", 1), msg("b", "a", 2)), "b", []int64{1, 2}},
		"a cycle of resets":        {tree(hostlog.Node{ID: "r", Parent: "r", Kind: hostlog.Reset, FirstKept: "q"}), "r", nil},
		"an entry of one id twice": {with(msg("b", "", 9)), "c", []int64{1, 2, 3}},
		"a message of a record's id": {
			with(hostlog.Node{ID: "m", Parent: "c", Type: "custom"}, hostlog.Node{ID: "m~", Shared: "m", Parent: "m", Kind: hostlog.Message, Place: 4}, msg("d", "m", 5)), "d",
			[]int64{1, 2, 3, 4, 5},
		},
		"a record of a message's id": {
			with(hostlog.Node{ID: "c~", Shared: "c", Type: "custom"}, msg("d", "c", 5)), "d",
			[]int64{1, 2, 3, 5},
		},
	} {
		got, _ := c.tree.Path(c.leaf)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPathThatBeginsWithACompactionStandsForMore(t *testing.T) {
	t.Parallel()
	compaction := hostlog.Node{ID: "c", Kind: hostlog.Record, Type: "compaction"}
	if _, compacted := tree(compaction, msg("a", "c", 1)).Path("a"); !compacted {
		t.Error("a compaction at the root was not seen")
	}
	compaction.Parent = "a"
	if _, compacted := tree(msg("a", "", 1), compaction, msg("b", "c", 2)).Path("b"); compacted {
		t.Error("a compaction behind a message stands for nothing else")
	}
}

func TestMessageBefore(t *testing.T) {
	t.Parallel()
	reset := func(id, parent, kept string) hostlog.Node {
		return hostlog.Node{ID: id, Parent: parent, Kind: hostlog.Reset, Type: "reset", FirstKept: kept}
	}
	tr := tree(msg("a", "", 1), msg("b", "a", 2), reset("r", "b", ""), msg("c", "r", 4), reset("k", "c", "c"), hostlog.Node{ID: "m", Parent: "k"}, msg("d", "m", 6))
	for id, want := range map[string]int64{"a": 0, "b": 1, "c": 0, "d": 4, "none": 0} {
		if got := tr.MessageBefore(id); got != want {
			t.Errorf("before %s: %d, want %d", id, got, want)
		}
	}
}
