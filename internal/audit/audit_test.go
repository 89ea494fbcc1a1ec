package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps entries in memory. away makes it fail.
type sink struct {
	mu      sync.Mutex
	entries []audit.Entry
	away    bool
	failed  chan struct{}
	old     int64
	forgot  int64
}

func (s *sink) RecordAudit(_ context.Context, entries []audit.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		select {
		case s.failed <- struct{}{}:
		default:
		}
		return errors.New("away")
	}
	s.entries = append(s.entries, entries...)
	return nil
}

func (s *sink) ForgetAudit(_ context.Context, _ time.Time, limit int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.old, int64(limit))
	s.old, s.forgot = s.old-n, s.forgot+n
	return n, nil
}

func (s *sink) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func TestEveryEntryIsWrittenInOrder(t *testing.T) {
	t.Parallel()
	s := &sink{}
	r := audit.NewRecorder(s, 0, slog.New(slog.DiscardHandler))
	const n = 2000
	for i := range n {
		r.Add(audit.Entry{Request: fmt.Sprint(i)})
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.entries) != n || r.Dropped() != 0 {
		t.Fatalf("%d entries, %d dropped", len(s.entries), r.Dropped())
	}
	for i, e := range s.entries {
		if e.Request != fmt.Sprint(i) {
			t.Fatalf("entry %d is %s", i, e.Request)
		}
	}
}

func TestEntriesWaitForASinkThatIsAway(t *testing.T) {
	t.Parallel()
	s := &sink{away: true, failed: make(chan struct{}, 1)}
	r := audit.NewRecorder(s, 0, slog.New(slog.DiscardHandler))
	const most = 40_000
	for i := range most {
		r.Add(audit.Entry{Request: fmt.Sprint(i)})
	}
	<-s.failed
	s.set(false)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lost := r.Dropped(); lost == 0 || len(s.entries)+int(lost) != most || s.entries[0].Request != "0" {
		t.Errorf("%d entries, %d dropped", len(s.entries), lost)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	for retention, want := range map[time.Duration]int64{0: 0, time.Hour: 12_000} {
		s := &sink{old: 12_000}
		r := audit.NewRecorder(s, retention, slog.New(slog.DiscardHandler))
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.forgot != want {
			t.Errorf("retention %v: %d forgotten", retention, s.forgot)
		}
	}
}
