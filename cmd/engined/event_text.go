package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/events"
)

// eventText says on one line what an event other than a message says; of a
// type that is not known here, its members.
func eventText(e client.Event) string {
	switch e.Type {
	case events.TurnCommitted.String():
		return textOf(e, func(b events.TurnCommittedBody) string {
			return plural(b.Count, "message") + " of turn " + b.AdvancementKey
		})
	case events.TurnCompleted.String():
		return textOf(e, turnText)
	case events.HostSessionBound.String():
		return textOf(e, func(b events.HostSessionBody) string {
			return "host session " + b.HostSessionID + after(", gateway ", b.Gateway)
		})
	case events.IdentityLinked.String():
		return textOf(e, func(b events.IdentityLinkedBody) string {
			return plural(len(b.Entries), "record") + " of the transcript of host session " + b.HostSessionID + after(", gateway ", b.Gateway)
		})
	case events.LeafMoved.String():
		return textOf(e, func(b events.LeafMovedBody) string { return "back to seq " + seqText(b.To) + after(": ", b.Reason) })
	case events.SessionReset.String():
		return textOf(e, func(b events.SessionResetBody) string {
			text := "nothing kept"
			if b.KeepFrom > 0 {
				text = "kept from seq " + seqText(b.KeepFrom)
			}
			return text + after(": ", b.Reason)
		})
	case events.SummaryCreated.String():
		return textOf(e, func(b events.SummaryBody) string {
			return fmt.Sprintf("level %d of %s, %s → %s tokens: %s", b.Level, ranges(b.Covers), thousands(b.SourceTokens), thousands(b.Tokens), b.Text)
		})
	case events.MessageSuperseded.String():
		return textOf(e, func(b events.MessageSupersededBody) string {
			return "seq " + seqText(b.Seq) + " is shown in a shorter form" + after(": ", b.Reason)
		})
	case events.EpochRotated.String():
		return textOf(e, epochText)
	case events.Forked.String():
		return textOf(e, func(b events.ForkedBody) string { return "from " + b.ParentSessionKey + " at seq " + seqText(b.AtSeq) })
	case events.SubagentPrepared.String():
		return textOf(e, func(b events.SubagentPreparedBody) string {
			return b.ContextMode + " sub-agent of " + b.ParentSessionKey + " at seq " + seqText(b.ParentSeq)
		})
	case events.SubagentEnded.String():
		return textOf(e, func(b events.SubagentEndedBody) string { return b.Reason })
	}
	return besides(e)
}

// textOf falls back to the members where the data is not what it should be.
func textOf[T any](e client.Event, text func(T) string) string {
	var body T
	if len(e.Data) == 0 || json.Unmarshal(e.Data, &body) != nil {
		return besides(e)
	}
	return text(body)
}

func turnText(b events.TurnCompletedBody) string {
	var parts []string
	if b.Model != "" {
		parts = append(parts, b.Model)
	}
	if b.PromptTokens > 0 {
		parts = append(parts, fmt.Sprintf("prompt %s tokens, estimated %s", thousands(b.PromptTokens), thousands(b.EstimatedTokens)))
	}
	if b.TokenBudget > 0 {
		parts = append(parts, "budget "+thousands(b.TokenBudget))
	}
	if b.IsHeartbeat {
		parts = append(parts, "heartbeat")
	}
	return strings.Join(parts, " · ")
}

func epochText(b events.EpochRotatedBody) string {
	text := string(b.Cause)
	if b.TokensBefore > 0 {
		text += fmt.Sprintf(", %s → %s tokens", thousands(b.TokensBefore), thousands(b.TokensAfter))
	}
	live := "no summary"
	switch n := len(b.Live); {
	case n == 1:
		live = "1 summary"
	case n > 1:
		live = thousands(n) + " summaries"
	}
	return text + ", " + live + " in the window"
}

// ranges writes where something reaches from and to, and that it has gaps.
func ranges(rs []events.Range) string {
	switch {
	case len(rs) == 0:
		return "nothing"
	case rs[0].From == rs[len(rs)-1].To:
		return "seq " + seqText(rs[0].From)
	}
	text := "seqs " + seqText(rs[0].From) + "–" + seqText(rs[len(rs)-1].To)
	if len(rs) > 1 {
		text += " with gaps"
	}
	return text
}

// after is a text behind what leads to it, and nothing where there is none.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// besides is what a row says beyond the columns, as name=value.
func besides(e client.Event) string {
	shown := map[string]bool{
		"seq": true, "type": true, "sessionKey": true, "epoch": true, "role": true, "tokens": true, "recordedAt": true,
		"parentSeq": true,
	}
	text := ""
	show := func(name string, value json.RawMessage) { text += name + "=" + string(value) + " " }
	_ = eachMember(e.Raw, func(name string, value json.RawMessage) { // a row that cannot be read shows nothing
		switch {
		case shown[name]:
		case name != "data" || eachMember(value, show) != nil:
			show(name, value)
		}
	})
	return text
}
