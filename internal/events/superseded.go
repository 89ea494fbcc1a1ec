package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Superseded is a message that windows show in a shorter form. The message itself
// stays in the log, and stands in the windows of earlier seqs.
type Superseded struct {
	// Seq is the message, By the event with the shorter form; both are places.
	Seq int64 `json:"seq"`
	By  int64 `json:"by"`
	// Tokens is the raw estimate of the shorter form, Saved what it takes less.
	Tokens int `json:"tokens"`
	Saved  int `json:"saved"`
}

// MessageSupersededBody is one message's shorter form.
type MessageSupersededBody struct {
	// Seq is the message's place.
	Seq int64 `json:"seq"`
	// By is the message that windows show instead, as it is to be shown.
	By json.RawMessage `json:"by"`
	// Reason says why, in words.
	Reason string `json:"reason,omitempty"`
}

// Encode writes the body with the bytes of By as they are, which a marshaller
// would change.
func (b MessageSupersededBody) Encode() ([]byte, error) {
	reason, err := json.Marshal(b.Reason)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"seq":`), strconv.FormatInt(b.Seq, 10)...)
	out = append(append(out, `,"reason":`...), reason...)
	out = append(append(out, `,"by":`...), b.By...)
	return append(out, '}'), nil
}

// Shorter finds the shorter form of a message.
func (s State) Shorter(seq int64) (Superseded, bool) {
	at, ok := slices.BinarySearchFunc(s.Superseded, seq, func(x Superseded, seq int64) int { return cmp.Compare(x.Seq, seq) })
	if !ok {
		return Superseded{}, false
	}
	return s.Superseded[at], true
}

// ShownShorter merges lists of superseded messages and keeps those that a state
// of this path and live set shows. Of two forms of one message the later stays.
func ShownShorter(path []Range, live []LiveSummary, lists ...[]Superseded) []Superseded {
	shown := State{Path: path, Live: live}
	newest := map[int64]Superseded{}
	for _, list := range lists {
		for _, x := range list {
			if shown.OnPath(x.Seq) && !shown.Covered(x.Seq) && newest[x.Seq].By < x.By {
				newest[x.Seq] = x
			}
		}
	}
	var out []Superseded
	for _, x := range newest {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Superseded) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// ReadSuperseded reads the shorter form out of an event's body.
func ReadSuperseded(body []byte) (json.RawMessage, error) {
	var b MessageSupersededBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("message.superseded: %w", err)
	}
	return b.By, nil
}
