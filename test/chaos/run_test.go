package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/proc"
)

// lifetime is how many cycles a session lives; births how many begin in each.
const (
	lifetime = 3
	births   = 2
)

// run is one run of the harness.
type run struct {
	*cluster

	t          *testing.T
	seed       uint64
	rand       *rand.Rand
	rec        *audit.Recorder
	http       *http.Client
	streams    *http.Client
	recordings [][][][]byte
	began      time.Time
	times      []int // how often each fault was injected

	watchers sync.WaitGroup
	unwatch  context.CancelFunc
	feeds    []*feed

	acked, again, refused, stepped, leases, replayed atomic.Int64

	mu       sync.Mutex
	alive    []*session
	old      []*session // what is over, and not erased
	erased   []*session
	undone   []string // keys of sub-agents that were rolled back
	troubles []string
	checked  struct{ events, calls, resumed int }
}

func newRun(t *testing.T) *run {
	t.Helper()
	transport, streams := &http.Transport{MaxIdleConnsPerHost: 32}, &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(streams.CloseIdleConnections)
	r := &run{
		t: t, seed: *seed, rand: rand.New(rand.NewPCG(*seed, 2)), rec: audit.NewRecorder(), http: &http.Client{Transport: transport},
		streams: &http.Client{Transport: streams}, recordings: recordings(t), began: time.Now(), times: make([]int, len(faults)),
	}
	r.cluster = newCluster(t)
	ctx, cancel := context.WithCancel(context.Background())
	r.unwatch = cancel
	for _, stream := range []bool{false, true} {
		f := &feed{run: r, stream: stream, by: make(map[string][]seen)}
		r.feeds = append(r.feeds, f)
		r.watchers.Go(func() { f.follow(ctx) })
	}
	t.Cleanup(func() { cancel(); r.watchers.Wait() })
	for i := range lifetime { // as if it had been going on
		r.bear(ctx, i-lifetime+1)
	}
	return r
}

func (r *run) now() int64 { return time.Since(r.began).Nanoseconds() }

// troublef notes what a client may not see.
func (r *run) troublef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.troubles) < 50 {
		r.troubles = append(r.troubles, fmt.Sprintf(format, args...))
	}
}

// found gives the troubles so far away.
func (r *run) found() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.troubles
	r.troubles = nil
	return out
}

func (r *run) active() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*session{}, r.alive...)
}

// bear begins the sessions of a cycle.
func (r *run) bear(ctx context.Context, cycle int) {
	for n := range births {
		k := kind((cycle*births + n + int(kinds)*births) % int(kinds))
		s := r.newSession(k, cycle+lifetime, n)
		s.doomed = n == 1 && cycle%2 == 0 && k != mirrored
		r.mu.Lock()
		r.alive = append(r.alive, s)
		r.mu.Unlock()
		r.watch(ctx, s)
	}
}

// leaving are the sessions whose time is over.
func (r *run) leaving(cycle int) (out []*session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var stay []*session
	for _, s := range r.alive {
		if s.born <= cycle+1 {
			out = append(out, s)
		} else {
			stay = append(stay, s)
		}
	}
	r.alive = stay
	return out
}

// load starts the clients of a cycle. The returned function waits for them.
func (r *run) load(ctx context.Context, cycle int, clock int64) (wait func()) {
	var all sync.WaitGroup
	for i := range *clients {
		c := r.client(cycle, i)
		if i%2 == 0 {
			c.clock = clock
		}
		all.Go(func() { c.work(ctx) })
	}
	return all.Wait
}

func (r *run) client(cycle, i int) *gateway {
	return &gateway{run: r, name: fmt.Sprintf("c%d-%d", cycle, i), rand: rand.New(rand.NewPCG(r.seed, uint64(cycle)*1000+uint64(i)))}
}

// progress waits until n more writes are acknowledged, and no longer than most.
func (r *run) progress(n int64, most time.Duration) {
	want, deadline := r.acked.Load()+n, time.Now().Add(most)
	for r.acked.Load() < want && time.Now().Before(deadline) {
		<-time.After(5 * time.Millisecond)
	}
}

// cycle is one: load, faults, healing, checks.
func (r *run) cycle(i int, s step, all []fault) {
	t := r.t
	ctx, stop := context.WithCancel(context.Background())
	wait := r.load(ctx, i, s.clock)
	chance := rand.New(rand.NewPCG(s.chance, 3))
	heals := make([]func(), 0, 2)
	heal := func() {
		for _, h := range heals {
			h()
		}
		heals = heals[:0]
	}
	for j, f := range s.faults {
		r.progress(s.after[j], time.Second)
		r.current = f
		back := all[f].inject(t, r.cluster, chance)
		r.times[f]++
		if server(all[f].on) { // it must be back before a process can be
			heals = append([]func(){back}, heals...)
		} else {
			heals = append(heals, back)
		}
		if j == 0 && s.together && len(s.faults) > 1 {
			continue
		}
		r.progress(s.held[j], time.Duration(200+chance.IntN(500))*time.Millisecond)
		heal()
	}
	r.progress(3, proc.Patience) // it goes on
	out := r.leaving(i)
	for n, s := range out {
		if s.doomed {
			r.erase(i, s)
		} else if n == 0 && i%2 == 0 && s.kind != mirrored {
			r.branches(i, s)
		}
	}
	stop()
	wait()
	r.settle(i, out)
	r.check(out)
	r.bear(r.watching(), i+1)
}

func server(on string) bool { return on == "postgres" || on == "nats" }

// watching is the context of the watchers.
func (r *run) watching() context.Context { return r.t.Context() }
