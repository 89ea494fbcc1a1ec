package hostlog_test

import (
	"fmt"
	"testing"

	"github.com/engined/engined/internal/hostlog"
)

// A long session is one chain of parents; walking it takes no stack.
func TestALongChainOfParents(t *testing.T) {
	t.Parallel()
	const n = 200_000
	tr := hostlog.NewTree()
	for i := range n {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint(i - 1)
		}
		tr.Add(msg(fmt.Sprint(i), parent, int64(i+1)))
	}
	places, compacted := tr.Path(fmt.Sprint(n - 1))
	if len(places) != n || places[0] != 1 || places[n-1] != n || compacted {
		t.Errorf("%d places, compacted %v", len(places), compacted)
	}
}
