package assemble_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

const (
	tenant  = "t"
	session = "agent:main:main"
	budget  = 32_000
)

// counted is a log that counts the round trips of reading a window.
type counted struct {
	*store.Store
	trips atomic.Int64
}

func (c *counted) View(ctx context.Context, tenant, key string, sid uuid.UUID, head int64, limit int) (store.View, error) {
	c.trips.Add(1)
	return c.Store.View(ctx, tenant, key, sid, head, limit)
}

func (c *counted) Facts(ctx context.Context, tenant string, sid uuid.UUID, upto, since int64, limit int) ([]window.Entry, error) {
	c.trips.Add(1)
	return c.Store.Facts(ctx, tenant, sid, upto, since, limit)
}

func (c *counted) Bodies(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64][]byte, error) {
	c.trips.Add(1)
	return c.Store.Bodies(ctx, tenant, sid, seqs)
}

func (c *counted) StateAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (events.State, error) {
	c.trips.Add(1)
	return c.Store.StateAsOf(ctx, tenant, sid, seq)
}

// turn is a user's message and the answer to it, of about 1 KiB together.
func turn(b *testing.B, i int) []store.NewEvent {
	b.Helper()
	text := strings.Repeat(fmt.Sprintf("In step %d the retry waits for the whole body again, so a slow disk doubles the time. ", i), 6)
	evs := make([]store.NewEvent, 0, 2)
	for _, role := range []string{"user", "assistant"} {
		body, err := json.Marshal(map[string]any{"role": role, "content": []map[string]string{{"type": "text", "text": text}}})
		if err != nil {
			b.Fatal(err)
		}
		m, err := message.Read(body)
		if err != nil {
			b.Fatal(err)
		}
		evs = append(evs, store.NewEvent{Type: events.MessageAppended, Body: body, Hash: sha256.Sum256(body), Facts: m.Facts(tokens.Message)})
	}
	return evs
}

// history opens a database with one session of so many messages.
func history(b *testing.B, messages int) *counted {
	b.Helper()
	s, err := storetest.Open(b, b.Context(), store.Config{URL: testdb.New(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	c := &counted{Store: s}
	var evs []store.NewEvent
	for i := range messages / 2 {
		if evs = append(evs, turn(b, i)...); len(evs) >= 2000 || i == messages/2-1 {
			c.add(b, evs)
			evs = nil
		}
	}
	return c
}

func (c *counted) add(b *testing.B, evs []store.NewEvent) {
	b.Helper()
	it := &store.Item{Tenant: tenant, SessionKey: session, Create: true, Host: true, Events: evs}
	if _, err := c.Append(b.Context(), it); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAssemble(b *testing.B) {
	for _, messages := range []int{400, 40_000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			c := history(b, messages)
			node := func() *engine.Lossless { return engine.NewLossless(engine.Config{Log: c}) }
			shared := node()
			b.Cleanup(func() { dispose(b, shared) })

			b.Run("warm", func(b *testing.B) {
				assemble(b, shared)
				c.measure(b, func() { assemble(b, shared) }, nil)
			})
			b.Run("cold", func(b *testing.B) {
				n := node()
				c.measure(b, func() { assemble(b, n) }, func() { dispose(b, n); n = node() })
				dispose(b, n)
			})
			b.Run("behind", func(b *testing.B) { // last: it makes the history longer
				evs := turn(b, messages)
				assemble(b, shared)
				c.measure(b, func() { assemble(b, shared) }, func() { c.add(b, evs) })
			})
		})
	}
}

func dispose(b *testing.B, e *engine.Lossless) {
	b.Helper()
	if err := e.Dispose(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}

// measure times call alone; next readies the one after it.
func (c *counted) measure(b *testing.B, call, next func()) {
	b.Helper()
	b.ReportAllocs()
	trips := int64(0)
	for b.Loop() {
		before := c.trips.Load()
		call()
		trips += c.trips.Load() - before
		if next != nil {
			b.StopTimer()
			next()
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(trips)/float64(b.N), "trips/op")
}

func assemble(b *testing.B, e *engine.Lossless) {
	b.Helper()
	limit := budget
	res, err := e.Assemble(b.Context(), contextengine.AssembleParams{
		Session: contextengine.Session{Tenant: tenant, SessionKey: session}, TokenBudget: &limit,
	})
	if err != nil {
		b.Fatal(err)
	}
	if len(res.Messages) < 100 || res.EstimatedTokens > budget {
		b.Fatalf("%d messages of %d tokens", len(res.Messages), res.EstimatedTokens)
	}
}
