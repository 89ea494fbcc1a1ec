package faults

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/test/faults/proc"
)

// life is one life of a session, as its client knows it.
type life struct {
	key, id  string
	parent   *life
	writes   [][2]time.Time // when acknowledged writes were sent and acknowledged
	leases   [][2]time.Time // from when until when they were held at least
	messages int
	over     bool
}

// keeper is what clients do to lives; each life is one client's.
type keeper struct {
	*load
	mu    sync.Mutex
	lives []*life
	made  int
}

func (k *keeper) begin(key string, parent *life) *life {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	l := &life{key: fmt.Sprint(key, "-", k.made), id: fmt.Sprint("life ", k.made), parent: parent}
	k.lives = append(k.lives, l)
	return l
}

// ask sends a request until it is answered; retention erases meanwhile.
func (k *keeper) ask(ctx context.Context, r *rand.Rand, key, call string, body map[string]any) (answer, time.Time) {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	for {
		sent := time.Now()
		a := k.post(ctx, k.urls[r.IntN(len(k.urls))], key, call, raw)
		if a.err == nil && a.status < http.StatusInternalServerError {
			return a, sent
		}
		if ctx.Err() != nil {
			return a, sent
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// step does one thing to a life; false once it is over.
func (k *keeper) step(ctx context.Context, t *testing.T, r *rand.Rand, l *life) bool {
	words := strings.Repeat("so much was said ", 60)
	var a answer
	var sent time.Time
	what := r.IntN(10)
	switch {
	case what == 0 && l.messages > 0:
		const ttl = 2500 * time.Millisecond
		a, sent = k.ask(ctx, r, l.key, "lease", map[string]any{"owner": "o", "ttlMs": ttl.Milliseconds(), "sessionId": l.id})
		if a.status == http.StatusOK {
			l.leases = append(l.leases, [2]time.Time{time.Now(), sent.Add(ttl)})
			return true
		}
	case what < 4:
		a, sent = k.ask(ctx, r, l.key, "commit-turn", map[string]any{
			"sessionId": l.id, "advancementKey": fmt.Sprint("t", l.messages), "tokenBudget": budget,
			"messages": []any{map[string]any{"role": "user", "content": words}, map[string]any{"role": "assistant", "content": words}},
		})
		if a.status == http.StatusOK {
			l.messages += 2
			l.writes = append(l.writes, [2]time.Time{sent, time.Now()})
			return true
		}
	default:
		a, sent = k.ask(ctx, r, l.key, "ingest", map[string]any{
			"sessionId": l.id, "idempotencyKey": fmt.Sprint("i", l.messages), "message": map[string]any{"role": "user", "content": words},
		})
		if a.status == http.StatusOK {
			l.messages++
			l.writes = append(l.writes, [2]time.Time{sent, time.Now()})
			return true
		}
	}
	if a.status == http.StatusConflict && strings.Contains(string(a.body), "session-erased") {
		l.over = true
		return false
	}
	if ctx.Err() == nil {
		t.Errorf("%s: %s", l.key, a)
	}
	return false
}

func (k *keeper) work(ctx context.Context, t *testing.T, r *rand.Rand) {
	var mine []*life
	for ctx.Err() == nil {
		if len(mine) == 0 || r.IntN(6) == 0 {
			var parent *life
			if len(mine) > 0 && r.IntN(2) == 0 {
				parent = mine[r.IntN(len(mine))]
				if parent.over || parent.messages == 0 {
					parent = nil
				}
			}
			l := k.begin("s", parent)
			if parent != nil {
				if a, _ := k.ask(ctx, r, parent.key, "fork", map[string]any{"newSessionKey": l.key}); a.status != http.StatusOK {
					l.parent = nil
				}
			}
			if k.step(ctx, t, r, l) {
				mine = append(mine, l)
			}
		}
		// The newest are written to more, so that old ones become idle.
		if n := len(mine); n > 0 {
			l := mine[max(0, n-1-int(r.ExpFloat64()*2))]
			if !l.over {
				k.step(ctx, t, r, l)
			}
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

// TestRetentionUnderLoad has three workers, one of them behind a pooler, erase for
// its size what clients write, fork and lease, and kills them all the while.
func TestRetentionUnderLoad(t *testing.T) {
	begin(t)
	s := newStack(t)
	const floor = 1500 * time.Millisecond
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	rules := []string{"--retention-size", "200KiB", "--retention-floor", floor.String(), "--retention-interval", "300ms"}
	workers := []*proc.Process{
		s.worker(t, "worker 1", rules...), s.worker(t, "worker 2", rules...),
		s.workerOn(t, "worker 3", testdb.Bounce(t, s.db), append(rules, "--pgbouncer", "--no-migrate")...),
	}
	k := &keeper{load: newLoad(t, nodes...)}
	ctx, stop := context.WithTimeout(t.Context(), 2*span(t))
	defer stop()
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() { k.work(ctx, t, rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	kills := 0
	for ; ctx.Err() == nil; kills++ {
		select {
		case <-time.After(time.Duration(200+rand.IntN(800)) * time.Millisecond):
		case <-ctx.Done():
		}
		i := kills % len(workers)
		workers[i].Kill(t)
		workers[i] = workers[i].Again(t)
	}
	all.Wait()
	k.check(t, s.db, floor, func() {
		workers[0].Kill(t)
		workers[0] = workers[0].Again(t)
	})
	t.Logf("%d kills, %d lives", kills, k.made)
}

func (k *keeper) check(t *testing.T, dsn string, floor time.Duration, again func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	number := func(sql string) (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Else a worker comes to what another one left within a minute; it looks when it
	// starts.
	if _, err := conn.Exec(t.Context(), `UPDATE tombstones SET sweep_at = now() WHERE emptied_at IS NULL`); err != nil {
		t.Fatal(err)
	}
	again()
	await(t, "all erasures are complete", func() bool { return number(`SELECT count(*) FROM tombstones WHERE emptied_at IS NULL`) == 0 })
	type grave struct {
		at     time.Time
		counts map[string]int64
	}
	graves := map[string]grave{}
	rows, err := conn.Query(t.Context(), `SELECT unnest(host_sessions), erased_at, counts FROM tombstones WHERE emptied_at IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var hash []byte
		var g grave
		if err := rows.Scan(&hash, &g.at, &g.counts); err != nil {
			t.Fatal(err)
		}
		graves[string(hash)] = g
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	buried := map[*life]grave{}
	for _, l := range k.lives {
		h := sha256.Sum256([]byte(l.id))
		g, gone := graves[string(h[:])]
		if !gone {
			continue
		}
		buried[l] = g
		if g.counts["events"] < int64(l.messages) || g.counts["sessions"] != 1 {
			t.Errorf("the receipt of %s, which had %d messages, counts %v", l.key, l.messages, g.counts)
		}
	}
	for _, l := range k.lives {
		nearer := time.Time{} // when a nearer ancestor went, and with it all inheritance
		for p := l; p != nil; p = p.parent {
			g, gone := buried[p]
			if !gone || !nearer.IsZero() && g.at.After(nearer) {
				continue
			}
			if p != l {
				nearer = g.at
			}
			for _, w := range l.writes {
				if w[1].Before(g.at) && w[0].After(g.at.Add(-floor)) {
					t.Errorf("%s was erased %s after a write to %s", p.key, g.at.Sub(w[0]), l.key)
				}
			}
			for _, held := range l.leases {
				if held[0].Before(g.at) && held[1].After(g.at) {
					t.Errorf("%s was erased %s before a lease of %s ended", p.key, held[1].Sub(g.at), l.key)
				}
			}
		}
	}
	if len(buried) < 5 {
		t.Errorf("only %d sessions were erased", len(buried))
	}
	for _, table := range []string{"events", "bodies", "event_keys", "session_states", "leases", "lineage", "compaction_debt", "drafts", "forgetting", "search_parts", "window_answers", "compaction_attempts", "session_keys", "session_bytes"} {
		if n := number(fmt.Sprintf(`SELECT count(*) FROM %s x WHERE EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = x.tenant_id AND t.sid = x.sid AND t.emptied_at IS NOT NULL)`, table)); n > 0 {
			t.Errorf("%d rows of erased sessions are left in %s", n, table)
		}
		if n := number(fmt.Sprintf(`SELECT count(*) FROM %s x WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.tenant_id = x.tenant_id AND s.sid = x.sid)
			AND NOT EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = x.tenant_id AND t.sid = x.sid)`, table)); n > 0 {
			t.Errorf("%d rows of no session are in %s", n, table)
		}
	}
	await(t, "what is left fits", func() bool {
		return number(`SELECT coalesce(sum(octet_length(e.body)), 0) FROM events e JOIN sessions s USING (tenant_id, sid)`) <= 200<<10
	})
	// Forks that forgot an ancestor may hold less than was counted of them.
	await(t, "what was counted is what is there", func() bool {
		return number(`SELECT t.bytes - (SELECT coalesce(sum(b.bytes), 0) FROM session_bytes b) FROM tenant_bytes t`) == 0 &&
			number(`SELECT count(*) FROM (
				SELECT sid, sum(octet_length(body)) AS bytes FROM events GROUP BY sid) e
				FULL JOIN session_bytes b USING (sid)
				WHERE e.bytes IS DISTINCT FROM b.bytes AND NOT EXISTS (SELECT FROM lineage l WHERE l.sid = e.sid)`) == 0
	})
	t.Logf("%d of %d erased under load, %d in the end", len(buried), len(k.lives), number(`SELECT count(*) FROM tombstones`))
}
