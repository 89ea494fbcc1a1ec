package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/testdb"
)

func TestForkBeginsASession(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(3), nil); err != nil {
		t.Fatal(err)
	}
	window := func(args ...string) string {
		return engined(t, append([]string{"window", "--json", "--budget", "10000", "--url", n.url}, args...)...).ok(t).out
	}
	messages := func(out string) string {
		_, rest, _ := strings.Cut(out, `"messages":`)
		all, _, _ := strings.Cut(rest, `"estimatedTokens"`)
		return all
	}
	if got := engined(t, "fork", "s", "f", "--url", n.url).ok(t); !strings.Contains(got.out, "Forked: f") {
		t.Errorf("%s", got.out)
	}
	engined(t, "fork", "s", "early", "--at", "2", "--url", n.url).ok(t)
	if got, want := messages(window("f")), messages(window("s")); got != want || !strings.Contains(got, "role") {
		t.Errorf("fork %s\nparent %s", got, want)
	}
	if got, want := messages(window("early")), messages(window("s", "--as-of", "2")); got != want || !strings.Contains(got, "role") {
		t.Errorf("fork %s\nparent %s", got, want)
	}
	if got := engined(t, "events", "f", "--url", n.url).ok(t); !strings.Contains(got.out, "from s at seq") {
		t.Errorf("%s", got.out)
	}
	for _, args := range [][]string{{"fork", "s", "f"}, {"fork", "s", "n", "--at", "99"}, {"fork", "s", "n", "--at", "0"}, {"fork", "nobody", "n"}} {
		if got := engined(t, append(args, "--url", n.url)...); got.code == exitOK || got.err == "" {
			t.Errorf("%v: exit code %d, %s", args, got.code, got.err)
		}
	}
}

// TestAForksSummariesGoOnWhereItsParentsWere: each listed id can be expanded under
// the fork's key, and names whose events it covers.
func TestAForksSummariesGoOnWhereItsParentsWere(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	compact := func(key string) {
		t.Helper()
		if _, err := cl.IngestBatch(t.Context(), key, conversation(40), nil); err != nil {
			t.Fatal(err)
		}
		budget := 1000
		if res, _, err := cl.Compact(t.Context(), key, contextengine.CompactParams{Force: true, TokenBudget: &budget}); err != nil || !res.Compacted {
			t.Fatalf("%+v %v", res, err)
		}
	}
	compact("s")
	if _, _, err := cl.Fork(t.Context(), "s", "f", 0); err != nil {
		t.Fatal(err)
	}
	parents, _, err := cl.Summaries(t.Context(), "s")
	if err != nil || len(parents) == 0 {
		t.Fatal(parents, err)
	}
	compact("f")
	all, _, err := cl.Summaries(t.Context(), "f")
	if err != nil || len(all) <= len(parents) {
		t.Fatal(all, err)
	}
	inherited, own := 0, 0
	for i, s := range all {
		if i < len(parents) && (s.ID != parents[i].ID || s.Text != parents[i].Text) {
			t.Errorf("summary %d of the fork is not %d of the parent", s.ID, parents[i].ID)
		}
		res, err := http.Get(fmt.Sprintf("%s/v1/sessions/f/summaries/%d/sources", n.url, s.ID))
		if err != nil {
			t.Fatal(err)
		}
		var list api.SourceList
		err = json.NewDecoder(res.Body).Decode(&list)
		if cerr := res.Body.Close(); err != nil || cerr != nil || len(list.Sources) == 0 {
			t.Fatalf("sources of %d: status %d, %v", s.ID, res.StatusCode, err)
		}
		for _, src := range list.Sources {
			switch {
			case src.Kind == "event" && src.SessionKey == "s":
				inherited++
			case src.Kind == "event" && src.SessionKey == "":
				own++
				if src.Seq < 2 || src.Seq > 81 { // behind the forked event
					t.Errorf("the fork's own seq %d", src.Seq)
				}
			}
		}
	}
	if inherited == 0 || own == 0 {
		t.Errorf("%d sources of the parent, %d own", inherited, own)
	}
}
