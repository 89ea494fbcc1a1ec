package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
)

// longKey is the session that is compacted.
const longKey = "bench:long"

type measurement struct {
	url    string
	pid    int
	budget int

	messages              int
	tokens                int64
	filled, planned, took time.Duration
	rssBefore, rssPeak    int64
	result                contextengine.CompactResult
	idle, busy            latencies
}

// fill makes a session of the given size: turns of a coding agent with prose,
// calls and outputs, none like another.
func (m *measurement) fill(ctx context.Context, size int) error {
	cl, err := client.New(m.url, "")
	if err != nil {
		return err
	}
	defer cl.Close()
	began := time.Now()
	rng := rand.New(rand.NewPCG(7420, 1))
	for turn := 0; ; {
		var batch []json.RawMessage
		for range 50 {
			batch = append(batch, turnOf(rng, turn)...)
			turn++
		}
		res, err := cl.IngestBatch(ctx, longKey, batch, nil)
		if err != nil {
			return err
		}
		m.messages += res.IngestedCount
		s, err := cl.Session(ctx, longKey)
		if err != nil {
			return err
		}
		if m.tokens = s.Tokens; m.tokens >= int64(size) {
			m.filled = time.Since(began)
			return nil
		}
	}
}

var vocabulary = strings.Fields("the server config retry deadline parser index session worker budget window summary epoch ledger cache token stream " +
	"we should look at why it fails when two nodes write at once and the second one waits for a lock that nobody gives back before the timeout ends")

func prose(rng *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()
}

func turnOf(rng *rand.Rand, n int) []json.RawMessage {
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) } //nolint:errchkjson // a string
	return []json.RawMessage{
		json.RawMessage(`{"role":"user","content":` + quote(fmt.Sprintf("Task %d: %s in /srv/app/module%d/file%d.go", n, prose(rng, 40), n%37, n)) + `}`),
		fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":%s},{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"/srv/app/module%d/file%d.go"}}],"stopReason":"toolUse"}`, quote(prose(rng, 30)), n, n%37, n),
		fmt.Appendf(nil, `{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":%s}],"isError":false}`, n, quote(prose(rng, 300))),
		fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop"}`, quote(fmt.Sprintf("Decided for task %d: %s", n, prose(rng, 60)))),
	}
}

// run measures the load alone, then with the compaction.
func (m *measurement) run(ctx context.Context, clients int, idle time.Duration) error {
	load := newLoad(m.url)
	if err := load.during(ctx, clients, &m.idle, func(ctx context.Context) error {
		select {
		case <-time.After(idle):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}); err != nil {
		return err
	}
	cl, err := client.New(m.url, "")
	if err != nil {
		return err
	}
	defer cl.Close()
	began := time.Now()
	if _, _, err := cl.Compact(ctx, longKey, contextengine.CompactParams{TokenBudget: &m.budget, Force: true, DryRun: true}); err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	m.planned = time.Since(began)
	m.rssBefore = m.memory("VmRSS")
	// The peak counts from here on.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.pid), []byte("5"), 0) // else the peak since the start counts
	return load.during(ctx, clients, &m.busy, func(ctx context.Context) error {
		began := time.Now()
		var err error
		m.result, _, err = cl.Compact(ctx, longKey, contextengine.CompactParams{TokenBudget: &m.budget, Force: true})
		m.took, m.rssPeak = time.Since(began), m.memory("VmHWM")
		if err == nil && !m.result.Compacted {
			err = fmt.Errorf("not compacted: %s", m.result.Reason)
		}
		return err
	})
}

// memory is a line of the process' status, in bytes; 0 where the system has none.
func (m *measurement) memory(name string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == name+":" {
			kb, _ := strconv.ParseInt(f[1], 10, 64) // the kernel's own number
			return kb << 10
		}
	}
	return 0
}

// latencies are of one phase.
type latencies struct {
	mu               sync.Mutex
	ingest, assemble []time.Duration
}

func (l *latencies) add(ingest, assemble time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ingest, l.assemble = append(l.ingest, ingest), append(l.assemble, assemble)
}

func at(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(share*float64(len(sorted)-1))]
}

// load is what other sessions do: a message, then a window.
type load struct {
	url string
	run int
}

func newLoad(url string) *load { return &load{url: url} }

// during runs the clients until f returns.
func (l *load) during(ctx context.Context, clients int, into *latencies, f func(context.Context) error) error {
	l.run++
	done := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		g.Go(func() error {
			cl, err := client.New(l.url, "")
			if err != nil {
				return err
			}
			defer cl.Close()
			rng := rand.New(rand.NewPCG(uint64(l.run), uint64(i)))
			key, budget := fmt.Sprintf("bench:load:%d", i), 32_000
			for {
				select {
				case <-done:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(20 * time.Millisecond):
				}
				began := time.Now()
				if _, err := cl.IngestBatch(ctx, key, []json.RawMessage{json.RawMessage(`{"role":"user","content":"` + prose(rng, 80) + `"}`)}, nil); err != nil {
					return err
				}
				stored := time.Now()
				if _, _, err := cl.Assemble(ctx, key, contextengine.AssembleParams{TokenBudget: &budget}); err != nil {
					return err
				}
				into.add(stored.Sub(began), time.Since(stored))
			}
		})
	}
	g.Go(func() error {
		defer close(done)
		return f(ctx)
	})
	return g.Wait()
}

func (m *measurement) print(w io.Writer) {
	mib := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	res := m.result.Result
	fmt.Fprintf(w, "| | |\n|---|---|\n")
	fmt.Fprintf(w, "| session | %d messages, %d tokens, filled in %s |\n", m.messages, m.tokens, m.filled.Round(100*time.Millisecond))
	fmt.Fprintf(w, "| plan (a dry run) | %s |\n", m.planned.Round(time.Millisecond))
	fmt.Fprintf(w, "| whole compaction | %s, %d → %d tokens |\n", m.took.Round(10*time.Millisecond), res.TokensBefore, res.TokensAfter)
	fmt.Fprintf(w, "| memory of the process | %s before, %s at the peak |\n\n", mib(m.rssBefore), mib(m.rssPeak))
	fmt.Fprintf(w, "| other sessions | calls | ingest p50 | p99 | assemble p50 | p99 |\n|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		l    *latencies
	}{{"alone", &m.idle}, {"beside the compaction", &m.busy}} {
		us := func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s |\n", row.name, len(row.l.ingest),
			us(at(row.l.ingest, .5)), us(at(row.l.ingest, .99)), us(at(row.l.assemble, .5)), us(at(row.l.assemble, .99)))
	}
}
