package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
)

// maxKeyBytes bounds idempotency and advancement keys.
const maxKeyBytes = 512

// A writer turns the contract's writes into events.
type writer struct {
	cfg    Config
	owes   bool
	scales known[cacheKey, scale]
	gauges known[gaugeKey, gauge]
}

// event reads a message into the event that stores it. field names it in errors.
func (w *writer) event(raw json.RawMessage, heartbeat bool, field string) (store.NewEvent, error) {
	if err := message.Check(raw, w.cfg.Limits); err != nil {
		return store.NewEvent{}, invalid(field, err)
	}
	if err := message.Validate(raw); err != nil {
		return store.NewEvent{}, invalid(field, err)
	}
	m, err := message.Read(raw)
	if err != nil {
		return store.NewEvent{}, invalid(field, err)
	}
	f := m.Facts(tokens.Message)
	if heartbeat {
		f.Flags |= message.Heartbeat
	}
	return store.NewEvent{
		Type: events.MessageAppended, Body: raw, Hash: message.Hash(raw, heartbeat), Facts: f,
	}, nil
}

// events reads the messages of a call; from is the place of the first among
// those that the caller sent.
func (w *writer) events(raws []json.RawMessage, heartbeat bool, from int) ([]store.NewEvent, error) {
	if len(raws) > w.cfg.MaxBatch {
		return nil, &contextengine.InvalidError{
			Field: "messages", Reason: fmt.Sprintf("at most %d messages in one call", w.cfg.MaxBatch),
			Limit: int64(w.cfg.MaxBatch), TooLarge: true,
		}
	}
	out := make([]store.NewEvent, len(raws))
	for i, raw := range raws {
		var err error
		if out[i], err = w.event(raw, heartbeat, fmt.Sprintf("messages[%d]", from+i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func invalid(field string, err error) error {
	if bad, ok := errors.AsType[*message.InvalidError](err); ok {
		return &contextengine.InvalidError{Field: field, Reason: bad.Error(), Limit: bad.Limit, TooLarge: bad.TooLarge}
	}
	return &contextengine.InvalidError{Field: field, Reason: err.Error()}
}

// checkSession refuses names that Postgres cannot hold or that are not a key.
func checkSession(s contextengine.Session) error {
	if n := len(s.SessionKey); n < 1 || n > maxKeyBytes {
		return &contextengine.InvalidError{Field: "sessionKey", Reason: fmt.Sprintf("1 to %d bytes", maxKeyBytes), Limit: maxKeyBytes}
	}
	for field, v := range map[string]string{"sessionKey": s.SessionKey, "sessionId": s.SessionID, "gatewayId": s.GatewayID, "leaseToken": s.LeaseToken} {
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return &contextengine.InvalidError{Field: field, Reason: "valid UTF-8 without NUL"}
		}
	}
	return nil
}

func clientKey(key, field string) ([]store.Key, error) {
	if key == "" {
		return nil, nil
	}
	if len(key) > maxKeyBytes {
		return nil, &contextengine.InvalidError{
			Field: field, Reason: fmt.Sprintf("at most %d bytes", maxKeyBytes), Limit: maxKeyBytes,
		}
	}
	return []store.Key{{Kind: store.ClientKey, Value: []byte(key)}}, nil
}

func (w *writer) ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	e, err := w.event(p.Message, p.IsHeartbeat, "message")
	if err != nil {
		return contextengine.IngestResult{}, err
	}
	if e.Keys, err = clientKey(p.IdempotencyKey, "idempotencyKey"); err != nil {
		return contextengine.IngestResult{}, err
	}
	it := store.HostItem(p.Session, p.Expectations)
	it.Events = []store.NewEvent{e}
	a, err := w.cfg.Log.Append(ctx, it)
	if err != nil {
		return contextengine.IngestResult{}, err
	}
	return contextengine.IngestResult{
		Ingested: !a.Duplicate, Seq: a.Seqs[0], Head: a.Head, Epoch: a.Epoch, Duplicate: a.Duplicate,
	}, nil
}

func (w *writer) ingestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	var none contextengine.IngestBatchResult
	if len(p.Messages) == 0 {
		return none, &contextengine.InvalidError{Field: "messages", Reason: "at least one message"}
	}
	if n := len(p.IdempotencyKeys); n != 0 && n != len(p.Messages) {
		return none, &contextengine.InvalidError{
			Field: "idempotencyKeys", Reason: fmt.Sprintf("%d keys for %d messages; give one key a message or none", n, len(p.Messages)),
		}
	}
	evs, err := w.events(p.Messages, p.IsHeartbeat, 0)
	if err != nil {
		return none, err
	}
	kept, at, err := keyed(evs, p.IdempotencyKeys)
	if err != nil {
		return none, err
	}
	it := store.HostItem(p.Session, p.Expectations)
	it.Events = kept
	a, err := w.cfg.Log.Append(ctx, it)
	if err != nil {
		return none, err
	}
	res := contextengine.IngestBatchResult{Head: a.Head, Epoch: a.Epoch, Seqs: make([]int64, len(evs))}
	for i, j := range at {
		res.Seqs[i] = a.Seqs[j]
	}
	for _, known := range a.Known {
		if !known {
			res.IngestedCount++
		}
	}
	return res, nil
}

// keyed gives the events their keys. A key that comes twice in one call is the
// same message twice: it is stored once, at[i] tells where. With another
// payload the call contradicts itself.
func keyed(evs []store.NewEvent, keys []string) (kept []store.NewEvent, at []int, err error) {
	first := make(map[string]int, len(keys))
	at = make([]int, len(evs))
	for i := range evs {
		if len(keys) > 0 && keys[i] != "" {
			if j, ok := first[keys[i]]; ok {
				if kept[j].Hash != evs[i].Hash {
					return nil, nil, &contextengine.IdempotencyConflictError{Key: keys[i]}
				}
				at[i] = j
				continue
			}
			first[keys[i]] = len(kept)
			if evs[i].Keys, err = clientKey(keys[i], fmt.Sprintf("idempotencyKeys[%d]", i)); err != nil {
				return nil, nil, err
			}
		}
		at[i] = len(kept)
		kept = append(kept, evs[i])
	}
	return kept, at, nil
}

func unknownIsFine[T any](res T, err error) (T, error) {
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return res, nil
	}
	var zero T
	return zero, err
}

func isEpochConflict(err error) bool {
	var conflict *contextengine.EpochConflictError
	return errors.As(err, &conflict)
}
