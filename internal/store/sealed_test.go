package store_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/vault"
)

// openSealed is a node that encrypts new sessions; every call is another node.
func openSealed(t testing.TB, url string) *store.Store {
	t.Helper()
	return openWith(t, storetest.Encrypt(t, store.Config{URL: url, RowSecurity: true}))
}

func openWith(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// dumpTables is what a dump has of the tables, as COPY writes it.
func dumpTables(t testing.TB, url string, without ...string) map[string][]byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for _, table := range tables {
		if slices.Contains(without, table) {
			continue
		}
		var text bytes.Buffer
		if _, err := conn.PgConn().CopyTo(t.Context(), &text, `COPY `+pgx.Identifier{table}.Sanitize()+` TO STDOUT`); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		out[table] = text.Bytes()
	}
	return out
}

func restoreTables(t testing.TB, url string, dump map[string][]byte, tables ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, table := range tables {
		if _, err := conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(dump[table]), `COPY `+pgx.Identifier{table}.Sanitize()+` FROM STDIN`); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
}

// tablesWith names the tables of a dump that hold a text.
func tablesWith(dump map[string][]byte, text string) (tables []string) {
	for table, raw := range dump {
		if bytes.Contains(raw, []byte(text)) || bytes.Contains(raw, []byte(hex.EncodeToString([]byte(text)))) {
			tables = append(tables, table)
		}
	}
	return tables
}

const secret = "SECRET-5e1f"

// say has a session hold a text everywhere it can hold one.
func say(t testing.TB, s *store.Store, key string) store.Appended {
	t.Helper()
	a := mustAppend(t, s, item(key, msg(`{"role":"user","content":"`+secret+`"}`, 1, "key"),
		msg(`{"role":"user","content":"`+strings.Repeat(secret+" ", 40_000)+`"}`, 1)))
	ctx := t.Context()
	if _, err := s.StepEpoch(ctx, tenant, key, 0, func(c store.Session, st events.State, _ int64) (store.EpochStep, error) {
		return store.EpochStep{State: st, LeafSeq: c.LeafSeq, LeafOffset: c.LeafOffset, Events: []store.NewEvent{
			{Type: events.SummaryCreated, Body: []byte(`{"text":"` + secret + `"}`)},
			{Type: events.EpochRotated, Body: []byte(`{"cause":"compaction"}`)},
		}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutDraft(ctx, tenant, a.SID, []byte("key"), []byte(secret)); err != nil {
		t.Fatal(err)
	}
	err := s.RecordAnswers(ctx, []store.Answer{{Tenant: tenant, SID: a.SID, Head: 2, Params: []byte(`{"recall":"` + secret + `"}`), At: time.Unix(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.AskHost(ctx, store.Question{
		Tenant: tenant, SID: a.SID, Key: []byte("question"), System: secret, Prompt: secret, LeaseWithin: time.Minute, AnswerWithin: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.AnswerHostJob(ctx, tenant, id, store.HostAnswer{Text: secret}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	lane := store.Lane{Gateway: "gw", HostSession: "hs"}
	err = s.InLane(ctx, tenant, key, lane, func(tx *store.LaneTx) error {
		return tx.SaveLane(ctx, store.LaneRow{Lane: lane, Position: []byte(secret)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// heard reads all that say said.
func heard(t testing.TB, s *store.Store, key string, sid [16]byte) (texts map[string]string, err error) {
	t.Helper()
	ctx := t.Context()
	texts = map[string]string{}
	var errs []error
	note := func(what string, text []byte, err error) {
		texts[what] = string(text)
		errs = append(errs, err)
	}
	bodies, err := s.Bodies(ctx, tenant, sid, []int64{1, 2, 3})
	for _, seq := range []int64{1, 2, 3} {
		note(fmt.Sprint("event ", seq), bodies[seq], err)
	}
	v, err := s.View(ctx, tenant, key, sid, 0, 10)
	note("view", bytes.Join(v.Bodies, nil), err)
	_, summary, err := s.NewestOfType(ctx, tenant, sid, events.SummaryCreated, 100)
	note("summary", summary, err)
	draft, _, err := s.Draft(ctx, tenant, sid, []byte("key"))
	note("draft", draft, err)
	answers, err := s.AnswersAt(ctx, tenant, sid, 2, 1)
	if len(answers) > 0 {
		note("answer", answers[0].Params, err)
	} else {
		note("answer", nil, err)
	}
	err = s.InLane(ctx, tenant, key, store.Lane{Gateway: "gw", HostSession: "hs"}, func(tx *store.LaneTx) error {
		texts["lane"] = string(tx.Lane.Position)
		return nil
	})
	errs = append(errs, err)
	return texts, errors.Join(errs...)
}

func TestNothingThatWasSaidIsStoredPlain(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	a := say(t, openSealed(t, url), "k")
	if found := tablesWith(dumpTables(t, url), secret); len(found) > 0 {
		t.Errorf("plain in %v", found)
	}
	other := openSealed(t, url)
	texts, err := heard(t, other, "k", a.SID)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range texts {
		if !strings.Contains(text, secret) {
			t.Errorf("%s: %.80q", what, text)
		}
	}
	if n, err := other.CompactionCount(t.Context(), tenant, a.SID); n != 1 || err != nil {
		t.Errorf("%d compactions, %v", n, err)
	}
	// Hashes of what a draft and a question were made from are names of theirs.
	for table, name := range map[string]string{"drafts": "key", "summarization_jobs": "question"} {
		var named int
		if err := queryRow(t, url, `SELECT count(*) FROM `+table+` WHERE key = '`+name+`'`, &named); err != nil || named != 0 {
			t.Errorf("%s: %d under the hash itself, %v", table, named, err)
		}
	}
	// The test sees what it looks for.
	plain := testdb.New(t)
	say(t, openWith(t, store.Config{URL: plain}), "k")
	dump := dumpTables(t, plain)
	for _, table := range []string{"events", "bodies", "drafts", "window_answers", "summarization_jobs", "transcript_lanes"} {
		if !slices.Contains(tablesWith(dump, secret), table) {
			t.Errorf("nothing is said in %s: the test proves nothing of it", table)
		}
	}
}

func TestADestroyedKeyErasesBackups(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	a, stays := say(t, s, "k"), say(t, s, "stays")
	backup := dumpTables(t, url, "session_keys")
	if e, err := s.Erase(t.Context(), tenant, "k"); err != nil || !e.Complete {
		t.Fatalf("%+v, %v", e, err)
	}
	for table := range backup {
		if table != "session_keys" && table != "goose_db_version" && table != "feed_eras" {
			exec(t, url, `DELETE FROM `+table)
		}
	}
	restoreTables(t, url, backup, "sessions", "events", "bodies", "event_keys", "session_states", "drafts", "window_answers", "transcript_lanes", "summarization_jobs")
	if found := tablesWith(backup, secret); len(found) > 0 {
		t.Errorf("plain in the backup: %v", found)
	}
	after := openSealed(t, url)
	texts, err := heard(t, after, "k", a.SID)
	if !errors.Is(err, vault.ErrKeyGone) {
		t.Errorf("%v", err)
	}
	for what, text := range texts {
		if text != "" {
			t.Errorf("%s of the erased session: %.80q", what, text)
		}
	}
	if _, err := after.Append(t.Context(), item("k", msg("{}", 1))); !errors.Is(err, vault.ErrKeyGone) {
		t.Errorf("a write to it: %v", err)
	}
	if texts, err := heard(t, after, "stays", stays.SID); err != nil || !strings.Contains(texts["event 1"], secret) {
		t.Errorf("the other session: %.80q, %v", texts["event 1"], err)
	}
	// The feed passes it by, and it can be erased again.
	page, err := after.FeedWithin(t.Context(), tenant, store.Cursor{}, 100, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		if gone := e.SID == a.SID; gone != errors.Is(e.Unreadable, vault.ErrKeyGone) || gone != (string(e.Body) == "null") {
			t.Errorf("%s %d: %.80q, %v", e.SID, e.Seq, e.Body, e.Unreadable)
		}
	}
	if e, err := after.Erase(t.Context(), tenant, "k"); err != nil || !e.Complete {
		t.Errorf("erasing it again: %+v, %v", e, err)
	}
}

func TestDamageIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	one := mustAppend(t, s, item("one", msg(`{"n":1}`, 1), msg(`{"n":2}`, 1)))
	two := mustAppend(t, s, item("two", msg(`{"n":3}`, 1)))
	exec(t, url, `UPDATE events SET body = set_byte(body, 20, get_byte(body, 20) # 1) WHERE sid = $1 AND seq = 2`, one.SID)
	// What is another session's does not open either.
	exec(t, url, `UPDATE events e SET body = x.body FROM events x WHERE e.sid = $1 AND x.sid = $2 AND x.seq = 1`, two.SID, one.SID)
	for sid, seq := range map[[16]byte]int64{one.SID: 2, two.SID: 1} {
		_, err := s.Events(t.Context(), tenant, sid, 0, 10)
		damage, ok := errors.AsType[*vault.CorruptError](err)
		if !ok || damage.SID != sid || damage.Seq != seq {
			t.Errorf("%v", err)
		}
	}
	if got, err := s.Bodies(t.Context(), tenant, one.SID, []int64{1}); err != nil || string(got[1]) != `{"n":1}` {
		t.Errorf("what is whole beside it: %q, %v", got[1], err)
	}
}

func TestWithoutTheKeyNothingIsReadOrWritten(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	a := say(t, openSealed(t, url), "k")
	other, err := vault.NewMasterKey("test")
	if err != nil {
		t.Fatal(err)
	}
	for name, node := range map[string]struct {
		vault *vault.Vault
		want  error
	}{
		"no vault": {nil, vault.ErrClosed}, "another master key": {storetest.Vault(t, url, other), vault.ErrMaster},
	} {
		s := openWith(t, store.Config{URL: url, Vault: node.vault, Encrypt: node.vault != nil})
		texts, err := heard(t, s, "k", a.SID)
		if !errors.Is(err, node.want) {
			t.Errorf("%s: %v", name, err)
		}
		for what, text := range texts {
			if text != "" {
				t.Errorf("%s: %s: %.40q", name, what, text)
			}
		}
		if _, err := s.Append(t.Context(), item("k", msg("{}", 1))); !errors.Is(err, node.want) {
			t.Errorf("%s: append: %v", name, err)
		}
		if _, err := s.StepEpoch(t.Context(), tenant, "k", 0, resetStep("")); !errors.Is(err, node.want) {
			t.Errorf("%s: step: %v", name, err)
		}
		if node.vault == nil {
			if _, err := s.Erase(t.Context(), tenant, "k"); !errors.Is(err, vault.ErrClosed) {
				t.Errorf("%s: erase: %v", name, err)
			}
		}
	}
	if row, err := openSealed(t, url).Session(t.Context(), tenant, "k"); err != nil || row.Head != 4 {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := store.Open(t.Context(), store.Config{URL: url, Encrypt: true}); !errors.Is(err, vault.ErrClosed) {
		t.Errorf("a node that is to encrypt without keys: %v", err)
	}
}

func TestPlainSessionsStayPlainBesideEncryptedOnes(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	plain, sealed := openWith(t, store.Config{URL: url}), openSealed(t, url)
	mustTake(t, plain, lease("leased before", "owner"))
	say(t, plain, "old")
	for _, key := range []string{"old", "new", "leased before"} {
		mustAppend(t, sealed, item(key, msg(`{"role":"user","content":"`+secret+`2"}`, 1, "again")))
		again := mustAppend(t, sealed, item(key, msg(`{"role":"user","content":"`+secret+`2"}`, 1, "again")))
		row, err := sealed.Session(t.Context(), tenant, key)
		if err != nil || row.Sealed != (key != "old") || !again.Duplicate {
			t.Errorf("%s: %+v, %+v, %v", key, row, again, err)
		}
		evs := log(t, sealed, key)
		if body := string(evs[len(evs)-1].Body); !strings.Contains(body, secret+"2") {
			t.Errorf("%s: %q", key, body)
		}
	}
	if a, err := plain.Append(t.Context(), item("old", msg("{}", 1))); err != nil || a.Head != 6 {
		t.Errorf("the old session on a node without keys: %+v, %v", a, err)
	}
	// Keys but encryption off: what is encrypted goes on, what is new is plain.
	off := openWith(t, store.Config{URL: url, Vault: storetest.Encrypt(t, store.Config{URL: url}).Vault})
	mustAppend(t, off, item("new", msg("{}", 1)))
	mustAppend(t, off, item("newest", msg("{}", 1)))
	for key, want := range map[string]bool{"new": true, "newest": false} {
		if row, err := off.Session(t.Context(), tenant, key); err != nil || row.Sealed != want {
			t.Errorf("%s: %+v, %v", key, row, err)
		}
	}
}

func TestNodesOpenAnEncryptedSessionTogether(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openSealed(t, url), openSealed(t, url), openSealed(t, url)}
	const sessions, each = 8, 6
	var wg sync.WaitGroup
	for n, s := range nodes {
		for k := range sessions {
			for i := range each {
				wg.Go(func() {
					key := fmt.Sprint("s", k)
					body := fmt.Sprintf(`{"node":%d,"i":%d}`, n, i)
					if _, err := s.Append(t.Context(), item(key, msg(body, 1), msg(`{"shared":true}`, 1, "shared"))); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				})
			}
		}
	}
	wg.Wait()
	for k := range sessions {
		key := fmt.Sprint("s", k)
		evs := log(t, nodes[k%len(nodes)], key)
		seen := map[string]int{}
		for _, e := range evs {
			seen[string(e.Body)]++
		}
		if len(evs) != len(nodes)*each+1 || seen[`{"shared":true}`] != 1 {
			t.Errorf("%s: %d events, %d of the shared one", key, len(evs), seen[`{"shared":true}`])
		}
		_, err := nodes[0].Append(t.Context(), item(key, msg(`{"another":1}`, 1, "shared")))
		if _, ok := errors.AsType[*contextengine.IdempotencyConflictError](err); !ok {
			t.Errorf("%s: another payload under the key: %v", key, err)
		}
	}
}

func TestAnErasedLifeDoesNotComeBackUnderItsKey(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	one, two := openSealed(t, url), openSealed(t, url)
	first := item("k", msg(`{"n":1}`, 1))
	first.HostSession = "first"
	a := mustAppend(t, one, first)
	mustAppend(t, two, first) // it remembers the life
	if _, err := one.Erase(t.Context(), tenant, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Append(t.Context(), first); !errors.Is(err, contextengine.ErrSessionErased) {
		t.Errorf("a late write: %v", err)
	}
	next := item("k", msg(`{"n":2}`, 1))
	next.HostSession = "next"
	b := mustAppend(t, two, next)
	if a.SID == b.SID {
		t.Error("the erased life came back")
	}
	if evs := log(t, openSealed(t, url), "k"); len(evs) != 1 || string(evs[0].Body) != `{"n":2}` {
		t.Errorf("%+v", evs)
	}
	mustAppend(t, one, next)
	var keys int
	if err := queryRow(t, url, `SELECT count(*) FROM session_keys`, &keys); err != nil || keys != 1 {
		t.Errorf("%d keys, %v", keys, err)
	}
}

func TestKeysInADatabaseOfTheirOwn(t *testing.T) {
	t.Parallel()
	url, apart := testdb.New(t), testdb.New(t)
	exec(t, apart, `DROP TABLE session_keys`)
	exec(t, apart, `DROP TABLE goose_db_version`)
	for range 2 {
		if err := store.MigrateSessionKeys(t.Context(), apart); err != nil {
			t.Fatal(err)
		}
	}
	line, err := vault.NewMasterKey("m")
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, store.Config{URL: url, Vault: storetest.Vault(t, apart, line), Encrypt: true})
	a := say(t, s, "k")
	// A backup may have everything of the log's database.
	backup := dumpTables(t, url)
	if len(bytes.TrimSpace(backup["session_keys"])) > 0 {
		t.Error("keys in the log's database")
	}
	newer, err := vault.NewMasterKey("m2")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := storetest.Vault(t, apart, newer+"\n"+line).Rotate(t.Context(), func(int) {}); n != 1 || err != nil {
		t.Errorf("rotation: %d, %v", n, err)
	}
	s = openWith(t, store.Config{URL: url, Vault: storetest.Vault(t, apart, newer), Encrypt: true})
	if _, err := heard(t, s, "k", a.SID); err != nil {
		t.Error(err)
	}
	if _, err := s.Erase(t.Context(), tenant, "k"); err != nil {
		t.Fatal(err)
	}
	var keys int
	if err := queryRow(t, apart, `SELECT count(*) FROM session_keys`, &keys); err != nil || keys != 0 {
		t.Errorf("%d keys are left, %v", keys, err)
	}
}

func TestANodeThatLookedBeforeTheFirstEventReadsOn(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	early, writer := openSealed(t, url), openSealed(t, url)
	mustTake(t, writer, lease("k", "owner"))
	row, err := early.Session(t.Context(), tenant, "k")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := early.CompactionCount(t.Context(), tenant, row.SID); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	say(t, writer, "k")
	if texts, err := heard(t, early, "k", row.SID); err != nil || !strings.Contains(texts["event 1"], secret) {
		t.Errorf("%.80q, %v", texts["event 1"], err)
	}
	mustAppend(t, early, item("k", msg(`{"n":1}`, 1)))
	if err := early.PutDraft(t.Context(), tenant, row.SID, []byte("early"), []byte(secret)); err != nil {
		t.Error(err)
	}
	if found := tablesWith(dumpTables(t, url), secret); len(found) > 0 {
		t.Errorf("plain in %v", found)
	}
}

// A key without events says nothing of the session: its first write was refused,
// and a node that does not encrypt came first.
func TestAKeyDoesNotMakeASessionEncrypted(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	sealed := openSealed(t, url)
	off := openWith(t, store.Config{URL: url, Vault: storetest.Encrypt(t, store.Config{URL: url}).Vault})
	mustTake(t, sealed, lease("k", "owner"))
	stale := int64(9)
	late := item("k", msg(`{"n":0}`, 1))
	late.ExpectedHead = &stale
	if _, err := sealed.Append(t.Context(), late); err == nil {
		t.Fatal("a stale write is taken")
	}
	a := say(t, off, "k")
	for _, s := range []*store.Store{off, sealed, openSealed(t, url)} {
		if texts, err := heard(t, s, "k", a.SID); err != nil || !strings.Contains(texts["event 1"], secret) {
			t.Errorf("%.80q, %v", texts["event 1"], err)
		}
		hashes, err := s.MessageHashes(t.Context(), tenant, a.SID, 0, 1)
		if want := msg(`{"role":"user","content":"`+secret+`"}`, 1).Hash; err != nil || !bytes.Equal(hashes[0].Hash, want[:]) {
			t.Errorf("its hash is read as %x, want %x, %v", hashes[0].Hash, want, err)
		}
	}
}

// fed waits until the feed shows so many events: whatever else the server does
// holds it back.
func fed(t testing.TB, n int, read func(context.Context, string, store.Cursor, int, int64) ([]store.FeedEvent, error)) ([]store.FeedEvent, error) {
	t.Helper()
	for {
		page, err := read(t.Context(), tenant, store.Cursor{}, 10, 1<<20)
		if err != nil || len(page) >= n {
			return page, err
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the feed stays behind")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestWhatIsPlainInAnEncryptedSessionIsDamaged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"its first byte": `UPDATE events SET body = set_byte(body, 0, get_byte(body, 0) # 1) WHERE sid = $1 AND seq = 2`,
		"emptied":        `UPDATE events SET body = '' WHERE sid = $1 AND seq = 2`,
		"another's":      `UPDATE events SET body = '{"role":"user","content":"forged"}' WHERE sid = $1 AND seq = 2`,
	} {
		url := testdb.New(t)
		s := openSealed(t, url)
		a := mustAppend(t, s, item("k", msg(`{"n":1}`, 1), msg(`{"n":2}`, 1)))
		exec(t, url, change, a.SID)
		for _, node := range []*store.Store{s, openSealed(t, url)} {
			reads := map[string]error{}
			_, reads["events"] = node.Events(t.Context(), tenant, a.SID, 0, 10)
			_, reads["view"] = node.View(t.Context(), tenant, "k", a.SID, 0, 10)
			_, reads["bodies"] = node.Bodies(t.Context(), tenant, a.SID, []int64{2})
			for what, err := range reads {
				if damage, ok := errors.AsType[*vault.CorruptError](err); !ok || damage.Seq != 2 {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
			page, err := fed(t, 2, node.FeedWithin)
			if err != nil || string(page[1].Body) != "null" || page[1].Unreadable == nil || string(page[0].Body) != `{"n":1}` {
				t.Errorf("%s: the feed %+v, %v", name, page, err)
			}
			unopened, err := fed(t, 2, node.FeedUnopened)
			if err != nil || !unopened[1].Sealed || unopened[1].Body != nil {
				t.Errorf("%s: the index would read %+v, %v", name, unopened, err)
			}
		}
	}
}

func TestADamagedSessionKeyIsTold(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	one, two := mustAppend(t, s, item("one", msg(`{"n":1}`, 1))), mustAppend(t, s, item("two", msg(`{"n":2}`, 1)))
	exec(t, url, `UPDATE session_keys SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) WHERE sid = $1`, one.SID)
	fresh := storetest.Encrypt(t, store.Config{URL: url})
	if _, err := fresh.Vault.Check(t.Context()); err != nil {
		t.Fatalf("no node would start: %v", err)
	}
	node := openWith(t, fresh)
	if _, err := node.Events(t.Context(), tenant, one.SID, 0, 10); !isCorrupt(err) {
		t.Errorf("its events: %v", err)
	}
	if _, err := node.Append(t.Context(), item("one", msg("{}", 1))); !isCorrupt(err) {
		t.Errorf("a write to it: %v", err)
	}
	page, err := fed(t, 2, node.FeedWithin)
	if err != nil || string(page[0].Body) != "null" || string(page[1].Body) != `{"n":2}` {
		t.Errorf("the feed: %+v, %v", page, err)
	}
	if evs, err := node.Events(t.Context(), tenant, two.SID, 0, 10); err != nil || len(evs) != 1 {
		t.Errorf("the session beside it: %v", err)
	}
	if e, err := node.Erase(t.Context(), tenant, "one"); err != nil || !e.Complete {
		t.Errorf("erasing it: %+v, %v", e, err)
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*vault.CorruptError](err)
	return ok
}

func TestForksOfEncryptedSessionsAreEncrypted(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	mustAppend(t, openSealed(t, url), item("parent", msg(`{"n":1}`, 1)))
	off := openWith(t, store.Config{URL: url, Vault: storetest.Encrypt(t, store.Config{URL: url}).Vault})
	mustAppend(t, off, item("plain", msg(`{"n":1}`, 1)))
	heir(t, off, "parent", "fork")
	heir(t, off, "fork", "fork of the fork")
	heir(t, off, "plain", "fork of a plain one")
	row, err := off.Session(t.Context(), tenant, "parent")
	if err != nil {
		t.Fatal(err)
	}
	isolated := &store.NewChild{
		Tenant: tenant, Key: "isolated", Parent: row.SID, ParentKey: "parent", Kind: store.KindIsolated,
		Events: []store.NewEvent{{Type: events.SubagentPrepared, Body: []byte(`{}`)}},
	}
	if _, err := off.OpenChild(t.Context(), isolated); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"fork": true, "fork of the fork": true, "isolated": true, "fork of a plain one": false} {
		if row, err := off.Session(t.Context(), tenant, key); err != nil || row.Sealed != want {
			t.Errorf("%s: encrypted %v, %v", key, row.Sealed, err)
		}
	}
	a := say(t, off, "fork")
	if found := tablesWith(dumpTables(t, url), secret); len(found) > 0 {
		t.Errorf("what a fork says is plain in %v", found)
	}
	if texts, err := heard(t, openSealed(t, url), "fork", a.SID); err != nil || !strings.Contains(texts["summary"], secret) {
		t.Errorf("%.80q, %v", texts["summary"], err)
	}
	isolated.Key = "another"
	if _, err := openWith(t, store.Config{URL: url}).OpenChild(t.Context(), isolated); !errors.Is(err, vault.ErrClosed) {
		t.Errorf("on a node without keys: %v", err)
	}
}

func TestANodeWithoutKeysKeepsNothingPlain(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	a := mustAppend(t, s, item("k", msg(`{"n":1}`, 1)))
	ask := func(s *store.Store, key string) (id [16]byte, err error) {
		return s.AskHost(t.Context(), store.Question{
			Tenant: tenant, SID: a.SID, Key: []byte(key), System: secret, Prompt: secret, LeaseWithin: time.Minute, AnswerWithin: time.Minute,
		})
	}
	id, err := ask(s, "one")
	if err != nil {
		t.Fatal(err)
	}
	closed := openWith(t, store.Config{URL: url})
	if err := closed.PutDraft(t.Context(), tenant, a.SID, []byte("draft"), []byte(secret)); err != nil {
		t.Error(err)
	}
	answer := store.Answer{Tenant: tenant, SID: a.SID, Head: 1, Params: []byte(`{"recall":"` + secret + `"}`), At: time.Unix(0, 0)}
	if err := closed.RecordAnswers(t.Context(), []store.Answer{answer}); err != nil {
		t.Error(err)
	}
	if _, err := ask(closed, "two"); err == nil {
		t.Error("a question is kept")
	}
	if _, err := closed.AnswerHostJob(t.Context(), tenant, id, store.HostAnswer{Text: secret}); !errors.Is(err, vault.ErrClosed) {
		t.Errorf("an answer: %v", err)
	}
	if _, err := closed.FailHostJob(t.Context(), tenant, id, secret); !errors.Is(err, vault.ErrClosed) {
		t.Errorf("a failure: %v", err)
	}
	if found := tablesWith(dumpTables(t, url), secret); len(found) > 0 {
		t.Errorf("plain in %v", found)
	}
	if ok, err := s.AnswerHostJob(t.Context(), tenant, id, store.HostAnswer{Text: "said"}); !ok || err != nil {
		t.Errorf("the answer on a node with the keys: %v, %v", ok, err)
	}
	if ok, err := s.AnswerHostJob(t.Context(), tenant, id, store.HostAnswer{Text: "again"}); ok || err != nil {
		t.Errorf("a second one: %v, %v", ok, err)
	}
}

func TestAGatewayMayAnswerAnything(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	const text = "\x1asealed:1:AAAA"
	for name, s := range map[string]*store.Store{
		"plain, no keys": openWith(t, store.Config{URL: url}), "encrypted": openSealed(t, url),
		"plain, keys": openWith(t, store.Config{URL: url, Vault: storetest.Encrypt(t, store.Config{URL: url}).Vault}),
	} {
		a := mustAppend(t, s, item(name, msg(`{"n":1}`, 1)))
		id, err := s.AskHost(t.Context(), store.Question{
			Tenant: tenant, SID: a.SID, Key: []byte("q"), System: "s", Prompt: "p", LeaseWithin: time.Minute, AnswerWithin: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.AnswerHostJob(t.Context(), tenant, id, store.HostAnswer{Text: text}); !ok || err != nil {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		if got, err := s.HostJob(t.Context(), tenant, id); err != nil || got.Answer.Text != text {
			t.Errorf("%s: %q, %v", name, got.Answer.Text, err)
		}
	}
}

func TestADamagedDraftIsWrittenAgain(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	a := say(t, s, "k")
	exec(t, url, `UPDATE drafts SET draft = set_byte(draft, 20, get_byte(draft, 20) # 1) WHERE sid = $1`, a.SID)
	if _, ok, err := s.Draft(t.Context(), tenant, a.SID, []byte("key")); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// What forks are to forget is read anew, and stays unopened.
func TestTheIndexOpensNothingThatForgets(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	a := mustAppend(t, s, item("k", msg(`{"n":1}`, 1)))
	exec(t, url, `UPDATE events SET type = 8 WHERE sid = $1`, a.SID)
	exec(t, url, `INSERT INTO forgetting (tenant_id, ancestor, sid) VALUES ($1, $2, $3)`, tenant, uuid.Must(uuid.NewV7()), a.SID)
	page, err := fed(t, 1, s.FeedUnopened)
	if err != nil || page[0].Body != nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// One session whose key does not open keeps no window of another from being
// recorded.
func TestAnswersOfOthersAreRecordedBesideADamagedKey(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	one, two := mustAppend(t, s, item("one", msg(`{"n":1}`, 1))), mustAppend(t, s, item("two", msg(`{"n":2}`, 1)))
	exec(t, url, `UPDATE session_keys SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) WHERE sid = $1`, one.SID)
	node := openSealed(t, url)
	for range 2 { // the first time nothing has proven the master key
		err := node.RecordAnswers(t.Context(), []store.Answer{
			{Tenant: tenant, SID: one.SID, Head: 1, Params: []byte(secret), At: time.Unix(0, 0)},
			{Tenant: tenant, SID: two.SID, Head: 1, Params: []byte(secret), At: time.Unix(0, 0)},
		})
		if err != nil {
			t.Error(err)
		}
	}
	for sid, want := range map[[16]byte]int{one.SID: 0, two.SID: 2} {
		if got, err := s.AnswersAt(t.Context(), tenant, sid, 1, 10); err != nil || len(got) != want {
			t.Errorf("%d answers, want %d, %v", len(got), want, err)
		}
	}
	if found := tablesWith(dumpTables(t, url), secret); len(found) > 0 {
		t.Errorf("plain in %v", found)
	}
}

func TestAnUnreadableQuestionKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openSealed(t, url)
	ask := func(key string) (id [16]byte) {
		a := mustAppend(t, s, item(key, msg(`{"n":1}`, 1)))
		id, err := s.AskHost(t.Context(), store.Question{
			Tenant: tenant, SID: a.SID, Key: []byte("q"), System: "s", Prompt: "p of " + key, LeaseWithin: time.Minute, AnswerWithin: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	damaged, gone := ask("damaged"), ask("gone")
	ask("whole")
	exec(t, url, `UPDATE summarization_jobs SET prompt = overlay(prompt placing 'AAAA' from 30) WHERE id = $1`, damaged)
	exec(t, url, `DELETE FROM session_keys WHERE sid = (SELECT sid FROM summarization_jobs WHERE id = $1)`, gone)
	node := openSealed(t, url)
	job, ok, err := node.LeaseHostJob(t.Context(), tenant, "gateway", nil, time.Minute)
	if err != nil || !ok || job.SessionKey != "whole" || job.Prompt != "p of whole" {
		t.Errorf("%+v, %v, %v", job, ok, err)
	}
	if got, err := node.HostJob(t.Context(), tenant, damaged); err != nil || !got.Failed || got.Err == "" {
		t.Errorf("who asked is told %+v, %v", got, err)
	}
	if job, ok, err := node.LeaseHostJob(t.Context(), tenant, "gateway", nil, time.Minute); ok || err != nil {
		t.Errorf("another one: %+v, %v, %v", job, ok, err)
	}
}
