package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/testdb"
)

func TestAnOverloadedNodeRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-conns", "2", "--max-calls", "4", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	var served, refused atomic.Int64
	var gateways sync.WaitGroup
	for range 40 {
		gateways.Go(func() {
			for range 10 {
				res, err := http.Post(n.url+"/v1/sessions/s/ingest", "application/json", strings.NewReader(`{"message":{"role":"user","content":"hi"}}`))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				switch {
				case res.StatusCode == http.StatusOK:
					served.Add(1)
				case (res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests) && res.Header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("status %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
				}
			}
		})
	}
	gateways.Wait()
	if served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d served, %d refused", served.Load(), refused.Load())
	}
	cl := clientOf(t, n.url, "")
	s, err := cl.Session(t.Context(), "s")
	if err != nil || s.Head != served.Load() {
		t.Errorf("head %d after %d were served, %v", s.Head, served.Load(), err)
	}
}

func TestTenantsHaveLimits(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	engined(t, "tenants", "set", "default", "--sessions", "1", "--database-url", db).ok(t)
	engined(t, "tenants", "set", "default", "--storage", "1KiB", "--database-url", db).ok(t)
	engined(t, "tenants", "set", "other", "--rate", "0.5", "--database-url", db).ok(t)
	if list := engined(t, "tenants", "list", "--json", "--database-url", db).ok(t).out; !strings.Contains(list, `"sessions": 1`) || !strings.Contains(list, `"storage": 1024`) || !strings.Contains(list, `"rate": 0.5`) {
		t.Errorf("%s", list)
	}
	for _, args := range [][]string{{"default"}, {"default", "--sessions", "-1"}, {"", "--sessions", "1"}} {
		if got := engined(t, append([]string{"tenants", "set", "--database-url", db}, args...)...); got.code != exitUsage {
			t.Errorf("%q: %+v", args, got)
		}
	}

	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	if _, err := cl.IngestBatch(t.Context(), "s", conversation(3), nil); err != nil {
		t.Fatal(err)
	}
	// What a tenant has is looked at from time to time.
	awaitProblem(t, "tenant-limit", func() error {
		_, err := cl.IngestBatch(t.Context(), "s", conversation(1), nil)
		return err
	})
	if _, err := cl.Session(t.Context(), "s"); err != nil {
		t.Errorf("reading: %v", err)
	}
	engined(t, "tenants", "unset", "default", "--database-url", db).ok(t)
	awaitProblem(t, "", func() error {
		_, err := cl.IngestBatch(t.Context(), "new", conversation(1), nil)
		return err
	})
}

// awaitProblem calls until the answer is a problem with the slug, or none.
func awaitProblem(t *testing.T, slug string, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := call()
		if slug == "" && err == nil || slug != "" && err != nil && strings.Contains(err.Error(), slug) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %q: %v", slug, err)
		}
	}
}

func TestAuditTellsWhoCalledWhat(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	n := serveIn(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--keys", "root=acme,reader=acme=analyst", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	root := clientOf(t, n.url, "root")
	if _, err := root.IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, n.url, "reader").IngestBatch(t.Context(), "s", conversation(1), nil); err == nil {
		t.Fatal("an analyst writes")
	}
	if got := engined(t, "audit", "--url", n.url, "--key", "reader"); got.code != exitFailure || !strings.Contains(got.err, "403") {
		t.Errorf("an analyst reads the audit log: %+v", got)
	}
	var page struct {
		Audit []struct {
			KeyID, Method, Route, SessionKey string
			Status                           int
		}
	}
	awaitProblem(t, "", func() error {
		got := engined(t, "audit", "--session", "s", "--json", "--url", n.url, "--key", "root").ok(t)
		if err := json.Unmarshal([]byte(got.out), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Audit) < 2 {
			return io.ErrNoProgress
		}
		return nil
	})
	newest, first := page.Audit[0], page.Audit[len(page.Audit)-1]
	if newest.Status != 403 || first.Status != 200 || first.Method != http.MethodPost || first.SessionKey != "s" || newest.KeyID == first.KeyID || !strings.HasPrefix(first.KeyID, "static-") {
		t.Errorf("%+v", page.Audit)
	}
	if text := engined(t, "audit", "--url", n.url, "--key", "root").ok(t).out; !strings.Contains(text, "/v1/sessions/{key}/ingest-batch") {
		t.Errorf("%s", text)
	}
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve"}, {"serve", "--no-migrate"}, {"worker"}, {"migrate", "up"}} {
		all := append(slices.Clone(args), "--database-url", db)
		if args[0] == "serve" {
			all = append(all, "--listen", "127.0.0.1:0")
		}
		got := engined(t, all...)
		if got.code != exitFailure || !strings.Contains(got.err, "newer than this program") || !strings.Contains(got.err, "99999") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestReadinessFollowsPostgres(t *testing.T) {
	t.Parallel()
	cluster := testdb.Cluster(t)
	db, err := cluster.EnsureDatabase(t.Context(), "engined")
	if err != nil {
		t.Fatal(err)
	}
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	if r, err := cl.Ready(t.Context()); !r.Ready || err != nil {
		t.Fatalf("%s, %v", r.Detail, err)
	}
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := cl.Ready(t.Context())
	if r.Ready || err != nil || !strings.Contains(r.Detail, "postgres") {
		t.Errorf("without Postgres: %+v, %v", r, err)
	}
	if _, err := cl.Health(t.Context()); err != nil {
		t.Errorf("it lives nevertheless: %v", err)
	}
	res, err := http.Post(n.url+"/v1/sessions/s/ingest", "application/json", strings.NewReader(`{"message":{"role":"user","content":"hi"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a write without Postgres: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
}
