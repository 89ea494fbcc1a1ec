package main

import (
	"testing"

	"github.com/engined/engined/internal/client"
)

func TestEveryTypeOfEventHasItsText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ row, want string }{
		{`{"type":"turn.committed","data":{"advancementKey":"t-1","count":3}}`, "3 messages of turn t-1"},
		{`{"type":"turn.completed","data":{"tokenBudget":8000,"model":"m","promptTokens":1200,"estimatedTokens":1100}}`, "m · prompt 1,200 tokens, estimated 1,100 · budget 8,000"},
		{`{"type":"host_session.bound","data":{"hostSessionId":"h","gateway":"g"}}`, "host session h, gateway g"},
		{`{"type":"leaf.moved","data":{"to":1234,"reason":"rewind"}}`, "back to seq 1234: rewind"},
		{`{"type":"session.reset","data":{}}`, "nothing kept"},
		{`{"type":"session.reset","data":{"keepFrom":7,"reason":"new topic"}}`, "kept from seq 7: new topic"},
		{`{"type":"summary.created","data":{"text":"## Goal\nShip it","level":2,"covers":[{"from":1,"to":9},{"from":12,"to":20}],"tokens":100,"sourceTokens":2000}}`, "level 2 of seqs 1–20 with gaps, 2,000 → 100 tokens: ## Goal Ship it"},
		{`{"type":"epoch.rotated","data":{"cause":"compaction","live":[1,2],"tokensBefore":9000,"tokensAfter":4000}}`, "compaction, 9,000 → 4,000 tokens, 2 summaries in the window"},
		{`{"type":"epoch.rotated","data":{"cause":"undo","live":[]}}`, "undo, no summary in the window"},
		{`{"seq":1,"type":"later.invented","epoch":1,"data":{"a":1,"b":"x"},"c":2}`, `a=1 b="x" c=2`},
		{`{"type":"epoch.rotated","data":[1]}`, "data=[1]"},
		{`{"type":"epoch.rotated"}`, ""},
	} {
		var e client.Event
		if err := e.UnmarshalJSON([]byte(tt.row)); err != nil {
			t.Fatal(err)
		}
		if got := oneLine(eventText(e), 0); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.row, got, tt.want)
		}
	}
}
