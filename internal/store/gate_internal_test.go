package store

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBreakerOpensAndBacksOff(t *testing.T) {
	t.Parallel()
	p := GatePolicy{Failures: 3, Pause: time.Minute, Longest: 5 * time.Minute}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b breaker
	for i, pause := range []time.Duration{0, 0, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
		b = p.failed(b, at, false, 0)
		if got := b.until.Sub(at); pause == 0 != b.until.IsZero() || pause > 0 && got != pause {
			t.Errorf("failure %d: open for %v, want %v", i+1, got, pause)
		}
		if pause > 0 {
			at = b.until
		}
	}
	if b := p.failed(breaker{}, at, true, 0); b.until.Sub(at) != time.Minute {
		t.Errorf("at once: %+v", b)
	}
	if b := p.failed(breaker{}, at, true, time.Hour); b.until.Sub(at) != time.Hour {
		t.Errorf("what the provider asked for: %+v", b)
	}
}

func TestBreakerNeverOpensEarlier(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := GatePolicy{Failures: rapid.IntRange(1, 5).Draw(t, "failures")}.withDefaults()
		at := time.Unix(1_700_000_000, 0)
		var b breaker
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			at = at.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "s")) * time.Second)
			was := b
			wait := time.Duration(rapid.IntRange(0, 3600).Draw(t, "wait")) * time.Second
			once := rapid.Bool().Draw(t, "once")
			b = p.failed(b, at, once, wait)
			switch {
			case b.until.Before(was.until):
				t.Fatalf("opens earlier: %v, then %v", was.until, b.until)
			case !b.until.IsZero() && b.until.Before(at.Add(max(wait, p.Pause))):
				t.Fatalf("open for %v only", b.until.Sub(at))
			case b.failures >= p.Failures && b.until.IsZero():
				t.Fatal("still closed")
			}
		}
	})
}
