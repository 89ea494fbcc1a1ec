package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
)

func messagesKeepTheirOrder(e *engine) {
	s := e.on("a")
	messages := talk(10)
	messages = append(messages,
		user("Read it."),
		json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"/a"}}],"stopReason":"toolUse"}`),
		json.RawMessage(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"A"}],"isError":false}`),
		assistant("It says A."))
	e.ingest(s, messages...)
	e.same("the window", e.window(s), messages)
}

// verbatim are messages whose bytes a careless codec would change.
func verbatim() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{ "role":"user", "content":"a \u0000 \ud99c \uD83E\uDD9E \/ \u003c <&> é", "n":1.000 }`),
		json.RawMessage(`{"zeta":1,"content":[{"text":"ok & <b>","type":"text"}],"alpha":12345678901234567890123,"role":"assistant","stopReason":"stop"}`),
		json.RawMessage("{\"role\":\"user\",\"content\":\"\u2028 \u2029 🦞 e\u0301\",\n\t\"n\":-0.0e+10}"),
	}
}

func messagesKeepTheirBytes(e *engine) {
	s := e.on("a")
	e.ingest(s, verbatim()...)
	e.same("the window", e.window(s), verbatim())
}

// equalMessagesAllCount: content alone is no reason to drop a message.
func equalMessagesAllCount(e *engine) {
	s := e.on("a")
	messages := []json.RawMessage{user("yes"), assistant("ok"), user("yes"), assistant("ok"), user("yes")}
	e.ingest(s, messages...)
	e.same("the window", e.window(s), messages)
}

func assembleStoresNothing(e *engine) {
	s := e.on("a")
	e.ingest(s, user("hello"), assistant("hi"))
	before := e.window(s)
	_, err := e.Assemble(e.Context(), contextengine.AssembleParams{Session: s, Messages: []json.RawMessage{user("hint")}, Prompt: "hint"})
	e.check(err)
	e.same("after a call with hints", e.window(s), before)
}

// sessionsAreApart: keys are compared byte for byte.
func sessionsAreApart(e *engine) {
	for _, name := range []string{"a", "A", "a ", "a/b", "a%2Fb", "e\u0301", "\u00e9", "..", "🦞"} {
		e.ingest(e.on(name), user("for "+name))
	}
	for _, name := range []string{"a", "A", "a ", "a/b", "a%2Fb", "e\u0301", "\u00e9", "..", "🦞"} {
		e.same(fmt.Sprintf("the window of %q", name), e.window(e.on(name)), []json.RawMessage{user("for " + name)})
	}
}

func tenantsAreApart(e *engine) {
	ours, theirs := e.on("a"), e.on("a")
	theirs.Tenant += "-2"
	e.ingest(ours, user("ours"))
	e.ingest(theirs, user("theirs"))
	e.same("our window", e.window(ours), []json.RawMessage{user("ours")})
	e.same("their window", e.window(theirs), []json.RawMessage{user("theirs")})
}

func windowsKeepToTheirBudget(e *engine) {
	s := e.on("a")
	messages := talk(60)
	e.ingest(s, append(slices.Clone(messages), user("the newest"))...)
	shown := 0
	for _, budget := range []int{1, 20, 300, 1000, 3000, 10_000, large} {
		res := e.assemble(s, budget)
		switch {
		case res.OverBudget == nil && res.EstimatedTokens > budget:
			e.Errorf("%d tokens in a budget of %d", res.EstimatedTokens, budget)
		case res.OverBudget != nil && (res.OverBudget.Budget != budget || res.OverBudget.Needed <= budget):
			e.Errorf("budget %d: %+v", budget, res.OverBudget)
		}
		e.same(fmt.Sprintf("the newest message in a budget of %d", budget), last(res.Messages, 1), []json.RawMessage{user("the newest")})
		if len(res.Messages) < shown {
			e.Errorf("a budget of %d shows %d messages, a smaller one %d", budget, len(res.Messages), shown)
		}
		shown = len(res.Messages)
	}
	if shown != len(messages)+1 {
		e.Errorf("a budget of %d shows %d of %d messages", large, shown, len(messages)+1)
	}
}

// compactMakesTheWindowSmaller, once: at once again there is nothing to do.
func compactMakesTheWindowSmaller(e *engine) {
	s := e.on("a")
	e.ingest(s, append(talk(80), user("the newest"))...)
	full := e.assemble(s, large)
	budget := full.EstimatedTokens / 3
	p := contextengine.CompactParams{Session: s, TokenBudget: &budget, Force: true, CompactionTarget: contextengine.TargetBudget}
	res, err := e.Compact(e.Context(), p)
	e.check(err)
	e.compaction(res)
	if !res.OK || !res.Compacted {
		e.Fatalf("%+v", res)
	}
	after := e.assemble(s, large)
	if after.EstimatedTokens >= full.EstimatedTokens {
		e.Errorf("%d tokens before, %d after", full.EstimatedTokens, after.EstimatedTokens)
	}
	e.same("the newest message", last(after.Messages, 1), []json.RawMessage{user("the newest")})
	again, err := e.Compact(e.Context(), p)
	e.check(err)
	e.compaction(again)
	if again.Compacted {
		e.Errorf("compacted again at once: %+v", again)
	}
}
