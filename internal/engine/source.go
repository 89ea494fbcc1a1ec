package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

// source reads what a compaction covers, from one session's line and no other.
type source struct{ line line }

func (s source) Messages(ctx context.Context, seqs []int64) ([]compact.SourceMessage, error) {
	stored, err := s.line.recorded(ctx, seqs)
	if err != nil {
		return nil, err
	}
	out := make([]compact.SourceMessage, len(seqs))
	for i, seq := range seqs {
		e, ok := stored[seq]
		if !ok {
			return nil, fmt.Errorf("message %d is gone", seq)
		}
		m, err := message.Read(e.Body)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", seq, err)
		}
		out[i] = compact.SourceMessage{Seq: seq, Message: m, Body: e.Body, RecordedAt: e.At}
	}
	return out, nil
}

func (s source) SummaryTexts(ctx context.Context, seqs []int64) ([]compact.SummaryText, error) {
	bodies, err := s.line.bodies(ctx, seqs)
	if err != nil {
		return nil, err
	}
	out := make([]compact.SummaryText, len(seqs))
	for i, seq := range seqs {
		body, ok := bodies[seq]
		if !ok {
			return nil, fmt.Errorf("summary %d is gone", seq)
		}
		var sum events.SummaryBody
		if err := json.Unmarshal(body, &sum); err != nil {
			return nil, fmt.Errorf("summary %d: %w", seq, err)
		}
		out[i] = compact.SummaryText{
			Seq: seq, Text: sum.Text, Tokens: sum.Tokens, Covers: sum.Covers, Timestamp: sum.Timestamp, Degraded: sum.Degraded,
		}
	}
	return out, nil
}

// drafts keeps a session's finished summaries until they are committed.
type drafts struct {
	log     Log
	session store.Session
}

func (d drafts) Get(ctx context.Context, key string) (compact.Draft, bool, error) {
	raw, ok, err := d.log.Draft(ctx, d.session.Tenant, d.session.SID, []byte(key))
	if err != nil || !ok {
		return compact.Draft{}, false, err
	}
	var draft compact.Draft
	if err := json.Unmarshal(raw, &draft); err != nil {
		return compact.Draft{}, false, fmt.Errorf("draft: %w", err)
	}
	return draft, true, nil
}

func (d drafts) Put(ctx context.Context, key string, draft compact.Draft) error {
	raw, err := json.Marshal(draft)
	if err != nil {
		return err
	}
	return d.log.PutDraft(ctx, d.session.Tenant, d.session.SID, []byte(key), raw)
}

// estimateSummary is what a summary's message costs in the session's dialect.
func estimateSummary(s store.Session) func(text string) int {
	return func(text string) int {
		m, err := message.Read(window.RenderSummary(s.Dialect, window.Summary{}, text))
		if err != nil {
			return tokens.Text(text)
		}
		return tokens.Message(m)
	}
}
