package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/window"
)

// The messages that a node has not seen come in log order, however the planner
// joins them with their bodies: a hash join gives them back in its own order.
func TestViewIsInLogOrderUnderEveryJoin(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	for _, off := range [][]string{nil, {"enable_nestloop"}, {"enable_nestloop", "enable_mergejoin"}, {"enable_nestloop", "enable_hashjoin"}} {
		t.Run(strings.Join(off, " "), func(t *testing.T) {
			u := url
			if len(off) > 0 {
				sep := "?"
				if strings.Contains(url, "?") {
					sep = "&"
				}
				u += sep + "options=" + "-c%20" + strings.Join(off, "%3Doff%20-c%20") + "%3Doff"
			}
			s := openURL(t, u)
			key := fmt.Sprint("k", off)
			a := mustAppend(t, s, item(key, msg("first", 1)))
			var evs []store.NewEvent
			for i := range 60 {
				body := fmt.Sprint("message ", i)
				if i%20 == 7 {
					body += strings.Repeat(" large", 60_000)
				}
				evs = append(evs, msg(body, 1))
			}
			mustAppend(t, s, item(key, evs...))
			v, err := s.View(t.Context(), tenant, key, a.SID, 1, 500)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.New) != 60 || !slices.IsSortedFunc(v.New, func(x, y window.Entry) int { return int(x.Seq - y.Seq) }) {
				t.Errorf("%d messages: %v", len(v.New), v.New)
			}
			for i, e := range v.New {
				if want := fmt.Sprint("message ", e.Seq-2); !strings.HasPrefix(string(v.Bodies[i])+" ", want+" ") {
					t.Errorf("seq %d has the body %.20q", e.Seq, v.Bodies[i])
				}
			}
		})
	}
}
