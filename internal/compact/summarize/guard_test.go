package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rapidRequest draws a conversation with identifiers in it.
func rapidRequest() *rapid.Generator[Request] {
	words := rapid.SampledFrom([]string{
		"deploy", "gateway", "staging", "the", "a", "config", "tests", "fail", "報告してください", "배포를", "release", "version",
	})
	ids := rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(10, 9999).Draw(t, "n")
		return fmt.Sprintf(rapid.SampledFrom([]string{"/srv/app/%d.go", "http://h%d.example.com/x", "db-%d.internal:5432", "v1.2.%d", "BUILD-%d77", "%d0000"}).Draw(t, "form"), n)
	})
	return rapid.Custom(func(t *rapid.T) Request {
		var lines []Line
		for i := range rapid.IntRange(1, 20).Draw(t, "lines") {
			var text []string
			for range rapid.IntRange(1, 8).Draw(t, "words") {
				if rapid.IntRange(0, 3).Draw(t, "id") == 0 {
					text = append(text, ids.Draw(t, "id"))
				} else {
					text = append(text, words.Draw(t, "word"))
				}
			}
			role := rapid.SampledFrom([]Role{User, Assistant, Call, ToolResult}).Draw(t, "role")
			lines = append(lines, Line{Seq: int64(i + 1), Role: role, Text: strings.Join(text, " ")})
		}
		return Request{Level: 1, Lines: lines, MaxTokens: rapid.IntRange(60, 1500).Draw(t, "max"), Estimate: func(s string) int { return 50 + len(s)/4 }}
	})
}

func TestDemandsFollowFromTheRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		req := rapidRequest().Draw(t, "req")
		d := DemandsOf(req)
		if len(d.Identifiers) > mostIdentifiers {
			t.Fatalf("%d identifiers", len(d.Identifiers))
		}
		room, cost := req.MaxTokens-req.Estimate(""), 0
		var all strings.Builder
		for _, l := range req.Lines {
			all.WriteString(l.Text + "\n")
		}
		for _, id := range d.Identifiers {
			cost += req.Estimate(id) - req.Estimate("")
			if !strings.Contains(all.String(), id) {
				t.Fatalf("%q was never said", id)
			}
		}
		if cost > max(room/4, 0) {
			t.Fatalf("%d tokens of identifiers in a room of %d", cost, room)
		}
		// What has everything lacks nothing; whatever is taken away is named.
		whole := strings.Join(Headings(), "\n- none\n") + "\n" + d.Ask + "\n" + strings.Join(d.Identifiers, ", ")
		if missing := d.Missing(whole); len(missing) > 0 {
			t.Fatalf("complete, yet it lacks %q", missing)
		}
		if len(d.Identifiers) > 0 {
			i := rapid.IntRange(0, len(d.Identifiers)-1).Draw(t, "gone")
			gone := d.Identifiers[i]
			less := strings.ReplaceAll(whole, gone, "")
			if !strings.Contains(strings.Join(d.Missing(less), "\n"), gone) {
				t.Fatalf("%q is gone and not missed", gone)
			}
		}
		if d.Headings {
			h := rapid.SampledFrom(Headings()).Draw(t, "heading")
			for _, bad := range []string{strings.Replace(whole, h+"\n", "", 1), whole + "\n" + h + "\n", strings.Replace(whole, h, h+" and more", 1)} {
				if !slices.ContainsFunc(d.Missing(bad), func(m string) bool { return strings.Contains(m, h) }) {
					t.Fatalf("the heading %s is wrong and not missed:\n%s", h, bad)
				}
			}
		}
	})
}

func TestLatestAsk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask, text string
		ok        bool
	}{
		"two words":    {"please deploy the gateway to staging", "- the gateway is on staging", true},
		"one of many":  {"please deploy the gateway to staging", "- the gateway", false},
		"none":         {"please deploy the gateway to staging", "- nothing of it", false},
		"short":        {"continue", "- asked to continue", true},
		"short, gone":  {"continue", "- asked nothing", false},
		"no words":     {"ok?", "- whatever", true},
		"japanese":     {"ゲートウェイを配置してください", "- ゲートウェイの配置が依頼された", true},
		"japanese no":  {"ゲートウェイを配置してください", "- 完了", false},
		"numbers only": {"42 or 43", "- 42", true},
	} {
		if got := mentions(tc.text, tc.ask); got != tc.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDemandsOfSummaries(t *testing.T) {
	t.Parallel()
	req := Request{
		Level: 2, MaxTokens: 800, Estimate: func(s string) int { return 50 + len(s)/4 },
		Children: []Child{
			{From: 1, To: 9, Text: "## Pending user asks\n- look at the logs\n## Exact identifiers\n- modified: /srv/app/a.go, v1.2.3"},
			{From: 10, To: 20, Text: "## Pending user asks\n- [12] user: deploy the gateway\n## Exact identifiers\n- read: /srv/app/b.go"},
		},
	}
	d := DemandsOf(req)
	slices.Sort(d.Identifiers)
	if want := []string{"/srv/app/a.go", "/srv/app/b.go", "v1.2.3"}; !slices.Equal(d.Identifiers, want) || d.Ask != "deploy the gateway" || !d.Headings {
		t.Errorf("%+v", d)
	}
}

func TestSmallSummariesAreHeldToLess(t *testing.T) {
	t.Parallel()
	req := rapidRequest().Example(1)
	req.MaxTokens = 50 + plainRoom - 1
	if d := DemandsOf(req); d.Headings || len(d.Identifiers) > 0 || d.Ask != "" {
		t.Errorf("%+v", d)
	}
}
