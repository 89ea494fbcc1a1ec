package retrieval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/search"
)

// TestOneUnitAsksTheIndexLittle: a unit may have thousands of atoms, and each
// look-up is a scan of the index.
func TestOneUnitAsksTheIndexLittle(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "w%d-", i)
	}
	for _, text := range []string{strings.Repeat("*", 4000), strings.Repeat("a-", 2000), strings.Repeat("静", 1300), many.String()} {
		q, err := search.Parse(text)
		if err != nil {
			t.Fatalf("%.20q: %v", text, err)
		}
		for _, u := range q.Units {
			all := u.Lookups()
			got := telling(all)
			if len(got) == 0 || len(got) > mostLookups {
				t.Errorf("%.20q: %d look-ups of %d", text, len(got), len(all))
			}
			for i, l := range got {
				if !slices.Contains(all, l) || slices.Contains(got[:i], l) {
					t.Errorf("%.20q: %+v is twice, or none of the unit's", text, l)
				}
			}
		}
	}
}
