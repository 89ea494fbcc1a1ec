package enginetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// memory is the smallest engine that does all that the contract says: messages
// in a slice, tokens as bytes over four, a summary that only counts.
type memory struct {
	mu       sync.Mutex
	sessions map[contextengine.Session]*session
}

type session struct {
	messages []json.RawMessage
	// summarized is how many messages the summary stands for.
	summarized int
	keys       map[string]stored
	epoch      int64
}

type stored struct {
	payload []byte
	seq     int64
}

func newMemory() *memory { return &memory{sessions: map[contextengine.Session]*session{}} }

func (m *memory) Info() contextengine.Info {
	return contextengine.Info{ID: "memory", Name: "Memory", OwnsCompaction: true}
}

// enter finds a session; with open, a missing one is made.
func (m *memory) enter(ctx context.Context, s contextengine.Session, open bool) (*session, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if s.SessionKey == "" || len(s.SessionKey) > 512 || strings.ContainsRune(s.SessionKey, 0) || !utf8.ValidString(s.SessionKey) {
		return nil, nil, &contextengine.InvalidError{Field: "sessionKey", Reason: "is odd"}
	}
	m.mu.Lock()
	id := contextengine.Session{Tenant: s.Tenant, SessionKey: s.SessionKey}
	found := m.sessions[id]
	if found == nil {
		found = &session{keys: map[string]stored{}, epoch: 1}
		if open {
			m.sessions[id] = found
		}
	}
	return found, m.mu.Unlock, nil
}

func checkAll(messages []json.RawMessage) error {
	for _, m := range messages {
		if !utf8.Valid(m) || !json.Valid(m) || m[0] != '{' {
			return &contextengine.InvalidError{Field: "messages", Reason: "not a JSON object"}
		}
	}
	return nil
}

func (s *session) head() int64 { return int64(len(s.messages)) }

// once appends under a key; the empty key is none.
func (s *session) once(key string, messages []json.RawMessage) (seq int64, fresh bool, err error) {
	payload := bytes.Join(raws(messages), []byte("\n"))
	if was, ok := s.keys[key]; ok && key != "" {
		if !bytes.Equal(was.payload, payload) {
			return 0, false, &contextengine.IdempotencyConflictError{Key: key, Seq: was.seq}
		}
		return was.seq, false, nil
	}
	for _, m := range messages {
		s.messages = append(s.messages, bytes.Clone(m))
	}
	s.keys[key] = stored{payload, s.head()}
	return s.head(), true, nil
}

func raws(messages []json.RawMessage) [][]byte {
	out := make([][]byte, len(messages))
	for i, m := range messages {
		out[i] = m
	}
	return out
}

func (m *memory) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	if err := checkAll([]json.RawMessage{p.Message}); err != nil {
		return contextengine.IngestResult{}, err
	}
	s, leave, err := m.enter(ctx, p.Session, true)
	if err != nil {
		return contextengine.IngestResult{}, err
	}
	defer leave()
	if p.ExpectedHead != nil && *p.ExpectedHead != s.head() {
		return contextengine.IngestResult{}, &contextengine.StaleHeadError{Expected: *p.ExpectedHead, Head: s.head()}
	}
	seq, fresh, err := s.once(p.IdempotencyKey, []json.RawMessage{p.Message})
	return contextengine.IngestResult{Ingested: fresh, Seq: seq, Head: s.head(), Epoch: s.epoch, Duplicate: err == nil && !fresh}, err
}

func (m *memory) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	if p.AdvancementKey == "" || len(p.Messages) == 0 {
		return contextengine.CommitTurnResult{}, &contextengine.InvalidError{Field: "advancementKey", Reason: "is required, and messages"}
	}
	if err := checkAll(p.Messages); err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	s, leave, err := m.enter(ctx, p.Session, true)
	if err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	defer leave()
	_, fresh, err := s.once("turn "+p.AdvancementKey, p.Messages)
	if err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	res := contextengine.CommitTurnResult{Status: contextengine.TurnDuplicate, Head: s.head(), Epoch: s.epoch}
	if fresh {
		res.Status = contextengine.TurnCommitted
	}
	return res, nil
}

func (m *memory) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	s, leave, err := m.enter(ctx, p.Session, false)
	if err != nil {
		return contextengine.AssembleResult{}, err
	}
	defer leave()
	budget := 10_000
	if p.TokenBudget != nil {
		budget = *p.TokenBudget
	}
	res := contextengine.AssembleResult{Messages: []json.RawMessage{}, Head: s.head(), Epoch: s.epoch}
	window := s.window()
	for i, msg := range slices.Backward(window) {
		n := estimate(msg)
		switch {
		case res.EstimatedTokens+n <= budget:
		case i == len(window)-1:
			res.OverBudget = &contextengine.OverBudget{Budget: budget, Needed: n}
		default:
			return res, nil
		}
		res.Messages = slices.Insert(res.Messages, 0, msg)
		res.EstimatedTokens += n
	}
	return res, nil
}

func estimate(m json.RawMessage) int { return len(m)/4 + 1 }

func (s *session) window() []json.RawMessage {
	if s.summarized == 0 {
		return s.messages
	}
	summary := fmt.Appendf(nil, `{"role":"user","content":"<summary>%d messages</summary>"}`, s.summarized)
	return append([]json.RawMessage{summary}, s.messages[s.summarized:]...)
}

func (m *memory) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	s, leave, err := m.enter(ctx, p.Session, false)
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	defer leave()
	size := func() (n int) {
		for _, msg := range s.window() {
			n += estimate(msg)
		}
		return n
	}
	before, budget, was := size(), 10_000, s.summarized
	if p.TokenBudget != nil {
		budget = *p.TokenBudget
	}
	for s.summarized < len(s.messages)-1 && size() > budget {
		s.summarized++
	}
	if s.summarized == was {
		return contextengine.CompactResult{OK: true, Reason: "nothing to compact", Epoch: s.epoch}, nil
	}
	s.epoch++
	return contextengine.CompactResult{
		OK: true, Compacted: true, Epoch: s.epoch,
		Result: &contextengine.CompactionOutcome{TokensBefore: before, TokensAfter: size(), Details: json.RawMessage(`{ "by":"<memory>" }`)},
	}, nil
}
