package hostlog

import "slices"

// Node is an entry in a lane's tree.
type Node struct {
	ID string
	// Shared is the id of an earlier entry that the host gave this one too; its
	// own is made up then.
	Shared string
	// Parent is the entry before it on the way to the root, empty at the root.
	// Of a Leaf it is the target.
	Parent string
	Kind   Kind
	// Place is where the event of a message or a reset stands; 0 for others.
	Place int64
	// Result is set for a message that answers tool calls.
	Result bool
	// Type is the host's word for the kind; only "compaction" matters.
	Type      string
	FirstKept string
}

// Tree is what is known of a lane's entries.
type Tree struct {
	nodes map[string]*Node
	// stands has the message that stands for an id which a record has too: who
	// follows that id follows the message.
	stands map[string]*Node
	// Order has the ids as the host wrote them.
	order []string
}

// NewTree is a lane without entries.
func NewTree() *Tree { return &Tree{nodes: map[string]*Node{}, stands: map[string]*Node{}} }

// Add adds an entry. The first of an id stays.
func (t *Tree) Add(n Node) {
	if _, ok := t.nodes[n.ID]; ok {
		return
	}
	t.nodes[n.ID] = &n
	t.order = append(t.order, n.ID)
	if first := t.nodes[n.Shared]; first != nil && first.Kind == Record && n.Kind == Message && t.stands[n.Shared] == nil {
		t.stands[n.Shared] = &n
	}
}

// at is the entry that an id names, nil for none.
func (t *Tree) at(id string) *Node {
	if m := t.stands[id]; m != nil {
		return m
	}
	return t.nodes[id]
}

// above is the entry that another one follows, nil at the root.
func (t *Tree) above(n *Node) *Node {
	if up := t.at(n.Parent); up != n {
		return up
	}
	return t.nodes[n.Parent]
}

// Messages are the places of the lane's messages, in the host's order.
func (t *Tree) Messages() []int64 {
	var out []int64
	for _, id := range t.order {
		if n := t.nodes[id]; n.Place > 0 && n.Kind == Message {
			out = append(out, n.Place)
		}
	}
	return out
}

// Path are the places of the messages that the host shows with its leaf at an entry, oldest
// first. Compacted tells that the walk ended at a record of the host's own
// compaction, which stands for more than the lane holds.
func (t *Tree) Path(leaf string) (places []int64, compacted bool) {
	var walk []*Node
	seen := make(map[string]bool)
	for n := t.at(leaf); n != nil && !seen[n.ID]; n = t.above(n) {
		seen[n.ID] = true
		if n.Kind == Reset {
			walk = append(walk, t.kept(n)...)
			break
		}
		walk = append(walk, n)
	}
	for _, n := range slices.Backward(walk) {
		if n.Kind == Message && n.Place > 0 {
			places = append(places, n.Place)
		} else if len(places) == 0 && n.Type == "compaction" {
			compacted = true
		}
	}
	return places, compacted
}

// kept are the entries that a reset keeps, newest first: from its first kept
// entry on, if that is behind it and no other reset stands between.
func (t *Tree) kept(reset *Node) []*Node {
	if reset.FirstKept == "" {
		return nil
	}
	var out []*Node
	seen := map[string]bool{reset.ID: true}
	for n := t.above(reset); n != nil && n.Kind != Reset && !seen[n.ID]; n = t.above(n) {
		seen[n.ID] = true
		out = append(out, n)
		if n == t.at(reset.FirstKept) {
			return out
		}
	}
	return nil
}

// Above reports whether an entry lies on the way from a leaf to the root, and
// what lies between them, newest first.
func (t *Tree) Above(leaf, id string) (between []*Node, ok bool) {
	seen := make(map[string]bool)
	to := t.at(id)
	for n := t.at(leaf); n != nil && !seen[n.ID]; n = t.above(n) {
		if n == to {
			return between, true
		}
		seen[n.ID] = true
		between = append(between, n)
	}
	return nil, false
}

// Put tells the place of an entry that had none yet.
func (t *Tree) Put(id string, place int64) {
	if n := t.nodes[id]; n != nil {
		n.Place = place
	}
}

// HasReset reports whether a reset of the lane stands at a place.
func (t *Tree) HasReset(place int64) bool {
	for _, n := range t.nodes {
		if n.Kind == Reset && n.Place == place {
			return true
		}
	}
	return false
}

// MessageBefore is the nearest message that an entry follows in what the host
// shows, 0 for none: behind a reset there is what it keeps.
func (t *Tree) MessageBefore(id string) int64 {
	seen := make(map[string]bool)
	n := t.at(id)
	for n != nil && !seen[n.ID] {
		seen[n.ID] = true
		if n.Kind == Reset {
			for _, k := range t.kept(n) {
				if k.Kind == Message && k.Place > 0 {
					return k.Place
				}
			}
			return 0
		}
		if n = t.above(n); n != nil && n.Kind == Message && n.Place > 0 {
			return n.Place
		}
	}
	return 0
}
