package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/tokens"
)

func TestExpandASummary(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	say := func(body string) { f.put("default", "s", events.MessageAppended, []byte(body)) }
	say(`{"role":"user","content":"Look at /etc/hosts"}`)
	say(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"/etc/hosts"}}]}`)
	say(`{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"127.0.0.1 localhost"}]}`)
	say(fmt.Sprintf(`{"role":"user","content":%q,"timestamp":1790000000000}`, strings.Repeat("a long story about hosts ", 400)))
	first := f.put("default", "s", events.SummaryCreated, []byte(`{"text":"looked at hosts","level":1,"tokens":5,"sources":[{"from":1,"to":3}],"covers":[{"from":1,"to":3}]}`))
	second := f.put("default", "s", events.SummaryCreated, []byte(`{"text":"a story","level":1,"tokens":4,"sources":[{"from":4,"to":4}],"covers":[{"from":4,"to":4}]}`))
	top := f.put("default", "s", events.SummaryCreated, fmt.Appendf(nil, `{"text":"all","level":2,"children":[%d,%d],"covers":[{"from":1,"to":4}]}`, second, first))
	path := func(id int64, query string) string {
		return fmt.Sprintf("/v1/sessions/s/summaries/%d/expand?%s", id, query)
	}

	level := get[api.Expansion](t, a, path(top, ""))
	if len(level.Items) != 2 || level.Next != nil || level.Items[0].ID != first || level.Items[0].Text != "looked at hosts" || level.Items[1].Kind != "summary" {
		t.Errorf("one level down: %+v", level)
	}
	page := get[api.Expansion](t, a, path(top, "messages=true&maxTokens=100"))
	if len(page.Items) != 3 || page.Next == nil || *page.Next != 3 || page.Total != 4 || page.Tokens > 100 {
		t.Fatalf("the messages under it: %+v", page)
	}
	for i, want := range []api.ExpandedRow{
		{Seq: 1, Role: "user", Text: "Look at /etc/hosts"},
		{Seq: 2, Role: "assistant", Text: `→ read {"path":"/etc/hosts"}`},
		{Seq: 3, Role: "toolResult", Text: "127.0.0.1 localhost"},
	} {
		if got := page.Items[i]; got.Seq != want.Seq || got.Role != want.Role || got.Text != want.Text || got.Time.IsZero() || got.Cut {
			t.Errorf("item %d: %+v, want %+v", i, got, want)
		}
	}
	rest := get[api.Expansion](t, a, path(top, "messages=true&maxTokens=100&after=3"))
	if len(rest.Items) != 1 || rest.Next != nil || !rest.Items[0].Cut || rest.Tokens > 100 || rest.Tokens < 80 || rest.Items[0].Time.UnixMilli() != 1790000000000 {
		t.Errorf("the rest: %+v", rest)
	}
	if text := rest.Items[0].Text; !strings.HasSuffix(text, "of 10000 characters shown; full text: event 4]") || tokens.Text(text) > 100 {
		t.Errorf("the cut text: %s", text)
	}
	if over := get[api.Expansion](t, a, path(top, "after=99")); len(over.Items) != 0 || over.Next != nil {
		t.Errorf("behind the end: %+v", over)
	}
}
