package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
)

// SummaryRow is a node of the summary tree. Its id is its event's seq; in a
// fork, whose tree goes on where its parent's was, the place in its line.
type SummaryRow struct {
	ID int64 `json:"id"`
	// SessionKey is the ancestor's that made it; absent for the session's own.
	SessionKey string `json:"sessionKey,omitempty"`
	// Live summaries stand in the window now.
	Live  bool   `json:"live"`
	Level int    `json:"level"`
	Epoch int64  `json:"epoch"`
	Text  string `json:"text"`
	// Tokens is the estimate of the summary as shown, SourceTokens of what it
	// replaces, CoveredTokens of all messages under it.
	Tokens        int            `json:"tokens"`
	SourceTokens  int            `json:"sourceTokens"`
	CoveredTokens int64          `json:"coveredTokens"`
	Covers        []events.Range `json:"covers"`
	Children      []int64        `json:"children,omitempty"`
	Summarizer    string         `json:"summarizer"`
	Model         string         `json:"model,omitempty"`
	PromptVersion string         `json:"promptVersion,omitempty"`
	// SourceHash (hex) identifies what it was made from.
	SourceHash string `json:"sourceHash,omitempty"`
	// Degraded tells that a rule wrote it, or something under it, because no model
	// did; it is written anew when one does.
	Degraded bool `json:"degraded,omitempty"`
	// InputTokens and OutputTokens are the provider's count, CostMicros millionths
	// of a US dollar by the prices that were set, TookMillis the time of the calls.
	InputTokens  int64     `json:"inputTokens,omitempty"`
	OutputTokens int64     `json:"outputTokens,omitempty"`
	CostMicros   int64     `json:"costMicros,omitempty"`
	TookMillis   int64     `json:"tookMillis,omitempty"`
	CreatedAt    time.Time `json:"createdAt"`
}

// SummaryList is a session's whole tree, oldest first.
type SummaryList struct {
	Summaries []SummaryRow `json:"summaries"`
}

// SourceRow is one thing that a summary covers directly: a message's event or
// another summary.
type SourceRow struct {
	Kind string `json:"kind" enum:"event,summary"`
	// SessionKey is the ancestor's whose event it is; absent for the session's own.
	SessionKey string `json:"sessionKey,omitempty"`
	Seq        int64  `json:"seq,omitempty"`
	ID         int64  `json:"id,omitempty"`
}

// SourceList is all that a summary covers directly.
type SourceList struct {
	Sources []SourceRow `json:"sources"`
}

func summaryOperations() []*operation {
	list := get(sessionPath+"/summaries", "listSummaries", tagSessions, "Read the summary tree", serveSummaries)
	list.answer = of[SummaryList]()
	one := get(sessionPath+"/summaries/{id}", "getSummary", tagSessions, "Look at a summary", serveSummary)
	one.answer = of[SummaryRow]()
	sources := get(sessionPath+"/summaries/{id}/sources", "listSources", tagSessions, "Expand a summary", serveSources)
	sources.description = "One row a source, never ranges."
	sources.answer = of[SourceList]()
	ops := []*operation{list, one, sources, expandOperation()}
	for _, op := range ops {
		op.keyed, op.refusals = true, []kind{kindUnknown}
	}
	return ops
}

// readSummaries is how many summaries are read at a time.
const readSummaries = 200

func serveSummaries(c *call) error {
	t, err := c.tree()
	if err != nil {
		return err
	}
	list := SummaryList{Summaries: []SummaryRow{}}
	for _, b := range t.boughs {
		for after := int64(0); ; {
			found, err := c.api.cfg.Log.EventsOfType(c.ctx, c.tenant, b.sid, events.SummaryCreated, after, b.upto, readSummaries)
			if err != nil {
				return err
			}
			for i := range found {
				row, _, err := t.row(b, &found[i])
				if err != nil {
					return err
				}
				list.Summaries = append(list.Summaries, row)
				after = found[i].Seq
			}
			if len(found) < readSummaries {
				break
			}
		}
	}
	return c.answer(&list)
}

func serveSummary(c *call) error {
	_, row, _, err := c.summary()
	if err != nil {
		return err
	}
	return c.answer(&row)
}

func serveSources(c *call) error {
	t, _, body, err := c.summary()
	if err != nil {
		return err
	}
	list := SourceList{Sources: []SourceRow{}}
	for _, r := range body.Sources {
		for n := r.From; n <= r.To; n++ {
			seg, seq, _ := t.line.Locate(n)
			list.Sources = append(list.Sources, SourceRow{Kind: "event", SessionKey: seg.SessionKey, Seq: seq})
		}
	}
	for _, id := range body.Children {
		list.Sources = append(list.Sources, SourceRow{Kind: "summary", ID: id})
	}
	return c.answer(&list)
}

// tree is a session's summaries: its own, and in front of them those that stood
// in the logs it inherited. Ids are places.
type tree struct {
	line   events.Line
	live   []int64
	boughs []bough
}

// bough is one session's part of a tree, oldest first.
type bough struct {
	sid         uuid.UUID
	key         string
	after, upto int64
}

func (c *call) tree() (tree, error) {
	s, err := c.api.cfg.Log.Session(c.ctx, c.tenant, c.session)
	if err != nil {
		return tree{}, err
	}
	state, err := c.api.cfg.Log.StateAsOf(c.ctx, c.tenant, s.SID, s.Head)
	if err != nil {
		return tree{}, err
	}
	t := tree{line: state.Line, live: make([]int64, len(state.Live))}
	for i := range state.Live {
		t.live[i] = state.Live[i].Seq
	}
	for _, seg := range state.Line {
		if seg.SID != (events.SID{}) {
			t.boughs = append(t.boughs, bough{uuid.UUID(seg.SID), seg.SessionKey, seg.After, seg.To - seg.After})
		}
	}
	t.boughs = append(t.boughs, bough{sid: s.SID, after: state.Line.Base(), upto: s.Head})
	return t, nil
}

func (t *tree) row(b bough, e *events.Event) (SummaryRow, events.SummaryBody, error) {
	own := *e
	own.Seq += b.after
	row, body, err := summaryOf(&own, t.live)
	row.SessionKey = b.key
	return row, body, err
}

// summary is the one that the path names.
func (c *call) summary() (tree, SummaryRow, events.SummaryBody, error) {
	missing := kindNotFound.problem("the session has no such summary").field("id")
	id, err := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return tree{}, SummaryRow{}, events.SummaryBody{}, missing
	}
	t, err := c.tree()
	if err != nil {
		return t, SummaryRow{}, events.SummaryBody{}, err
	}
	row, body, err := c.find(&t, id)
	if errors.Is(err, errNoSummary) {
		err = missing
	}
	return t, row, body, err
}

var errNoSummary = errors.New("no such summary")

// find reads a summary of the tree.
func (c *call) find(t *tree, id int64) (SummaryRow, events.SummaryBody, error) {
	for _, b := range t.boughs {
		seq := id - b.after
		if seq < 1 || seq > b.upto {
			continue
		}
		found, err := c.api.cfg.Log.EventsOfType(c.ctx, c.tenant, b.sid, events.SummaryCreated, seq-1, seq, 1)
		if err != nil {
			return SummaryRow{}, events.SummaryBody{}, err
		}
		if len(found) > 0 {
			return t.row(b, &found[0])
		}
	}
	return SummaryRow{}, events.SummaryBody{}, errNoSummary
}

func summaryOf(e *events.Event, live []int64) (SummaryRow, events.SummaryBody, error) {
	var b events.SummaryBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return SummaryRow{}, b, fmt.Errorf("summary %d: %w", e.Seq, err)
	}
	row := SummaryRow{
		ID: e.Seq, Live: slices.Contains(live, e.Seq), Level: b.Level, Epoch: e.Epoch, Text: b.Text,
		Tokens: b.Tokens, SourceTokens: b.SourceTokens, CoveredTokens: b.CoveredTokens, Covers: b.Covers,
		Children: b.Children, Summarizer: b.Summarizer, Model: b.Model, PromptVersion: b.PromptVersion,
		SourceHash: b.SourceHash, Degraded: b.Degraded, InputTokens: b.InputTokens, OutputTokens: b.OutputTokens,
		CostMicros: b.CostMicros, TookMillis: b.TookMillis, CreatedAt: e.RecordedAt,
	}
	if row.Covers == nil {
		row.Covers = []events.Range{}
	}
	return row, b, nil
}
