package main

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

// labels name a session's members as people do; zero is what 0 means there.
var labels = map[string]struct{ name, zero, unit string }{
	"sessionKey":    {name: "session"},
	"head":          {name: "head"},
	"hostHead":      {name: "newest seq of a host", zero: "-"},
	"epoch":         {name: "epoch"},
	"tokens":        {name: "window untrimmed", unit: " tokens"},
	"debt":          {name: "owes a compaction for", zero: "-", unit: " tokens"},
	"tokenBudget":   {name: "budget", zero: "-", unit: " tokens"},
	"dialect":       {name: "dialect"},
	"gatewayId":     {name: "gateway"},
	"hostSessionId": {name: "host session"},
	"createdAt":     {name: "created"},
	"updatedAt":     {name: "updated"},
	"compactions":   {name: "compactions"},
}

// showFields prints a session's members in the node's order.
func (c *cli) showFields(raw json.RawMessage) error {
	t := newTable(c.out, left("FIELD"), left("VALUE"))
	err := eachMember(raw, func(name string, value json.RawMessage) {
		switch name {
		case "attempts":
			return // a table of their own
		case "lineage":
			c.lineageFields(t, value)
			return
		}
		label := labels[name].name
		if label == "" {
			label = spaced(name)
		}
		t.row(oneLine(label, 0), oneLine(c.fieldText(name, value), room(c.out, 25)))
	})
	if err != nil {
		return err
	}
	return t.flush()
}

// lineageFields tells of whom a session descends, and who descends from it.
func (c *cli) lineageFields(t *table, raw json.RawMessage) {
	var l struct {
		Parent   *relative  `json:"parent"`
		Children []relative `json:"children"`
	}
	if json.Unmarshal(raw, &l) != nil {
		return
	}
	if l.Parent != nil {
		t.row("parent", oneLine(l.Parent.text(), room(c.out, 25)))
	}
	const shown = 5
	for i := range l.Children[:min(shown, len(l.Children))] {
		t.row("child", oneLine(l.Children[i].text(), room(c.out, 25)))
	}
	if more := len(l.Children) - shown; more > 0 {
		t.row("", "and "+plural(more, "other")+"; --json lists up to 100")
	}
}

// relative is the other end of a descent.
type relative struct {
	SessionKey  string `json:"sessionKey"`
	Kind        string `json:"kind"`
	ContextMode string `json:"contextMode"`
	AtSeq       int64  `json:"atSeq"`
	EndReason   string `json:"endReason"`
}

func (r *relative) text() string {
	key := r.SessionKey
	if key == "" {
		key = "(erased)"
	}
	out := key + ", " + r.Kind
	if r.ContextMode != "" {
		out += " (" + r.ContextMode + ")"
	}
	out += " at seq " + seqText(r.AtSeq)
	if r.EndReason != "" {
		out += ", " + r.EndReason
	}
	return out
}

func (c *cli) fieldText(name string, value json.RawMessage) string {
	var s string
	var n int64
	switch {
	case json.Unmarshal(value, &s) == nil:
		if at, err := time.Parse(time.RFC3339, s); err == nil && strings.HasSuffix(name, "At") {
			return at.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + ago(age(c.now(), at)) + ")"
		}
		return s
	case json.Unmarshal(value, &n) == nil:
		if zero := labels[name].zero; n == 0 && zero != "" {
			return zero
		}
		return thousands(n) + labels[name].unit
	}
	return string(value)
}

// ago is an age in a sentence.
func ago(age string) string {
	if age == "now" || age == "-" {
		return age
	}
	return age + " ago"
}

// spaced writes aMemberName as "a member name".
func spaced(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
