package chaos

import (
	"bytes"
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/test/faults/proc"
)

// end holds everything against everything: all logs, the feed from its
// beginning, the projections, and what is left of what was erased.
func (r *run) end() {
	t := r.t
	for _, s := range r.active() {
		s.doomed = false
		r.old = append(r.old, s)
	}
	r.settle(1_000_000, r.active())
	for i, s := range r.old {
		if !r.rec.Acked(s.key) {
			continue
		}
		log := r.audit(i, s)
		r.paid(s)
		for _, f := range r.feeds {
			r.await(f.name()+" of "+s.key, func() bool { return f.of(s.key, len(log)) != nil })
			if found := held(f.name(), s.key, log, f.of(s.key, len(log))); found != "" {
				r.troublef("%s", found)
			}
		}
	}
	r.readFeed()
	r.verify(t)
	r.leftovers(t)
}

// readFeed reads the whole feed: each event of what lives once and in order,
// and none of what was erased.
func (r *run) readFeed() {
	gone := r.gone()
	heads := make(map[string]int64)
	for cursor := ""; ; {
		n := 0
		if !r.await("the feed", func() bool {
			rows, next, err := r.page(r.nodes[0].url, cursor, 500)
			if err != nil {
				return false
			}
			for _, e := range rows {
				if heads[e.SessionKey]++; heads[e.SessionKey] != e.Seq {
					r.troublef("the feed shows seq %d of %s where %d belongs", e.Seq, e.SessionKey, heads[e.SessionKey])
				}
			}
			n, cursor = len(rows), next
			return true
		}) || n == 0 {
			break
		}
	}
	for key := range heads {
		if gone[key] {
			r.troublef("the feed shows the erased %s", key)
		}
	}
	for _, s := range r.old {
		if n := int64(len(r.feeds[0].by[s.key])); r.rec.Acked(s.key) && heads[s.key] != n {
			r.troublef("the feed shows %d events of %s; read as it came it showed %d", heads[s.key], s.key, n)
		}
	}
}

// verify lets the program fold every log.
func (r *run) verify(t *testing.T) {
	t.Helper()
	program, err := proc.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "doctor", "--verify", "--database-url", r.pg.dsn).CombinedOutput()
	if err != nil {
		r.troublef("doctor --verify: %v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out))
}

var (
	plainMark = regexp.MustCompile(`mark-[0-9a-f]{8}`)
	hexMark   = regexp.MustCompile(hex.EncodeToString([]byte("mark-")) + `(?:3[0-9]|6[1-6]){8}`)
)

// leftovers looks for erased sessions in every table and in the NATS store.
func (r *run) leftovers(t *testing.T) {
	t.Helper()
	gone, there := make(map[string]string), make(map[string]bool)
	for _, s := range r.erased {
		if r.rec.Acked(s.key) {
			gone[s.mark] = s.key
		}
	}
	for _, s := range r.old {
		delete(gone, s.mark)
	}
	told := make(map[string]bool)
	look := func(where string, text []byte) {
		marks := plainMark.FindAll(text, -1)
		for _, m := range hexMark.FindAll(text, -1) {
			raw := make([]byte, hex.DecodedLen(len(m)))
			if _, err := hex.Decode(raw, m); err == nil {
				marks = append(marks, raw)
			}
		}
		for _, m := range marks {
			there[string(m)] = true
			if key, bad := gone[string(m)]; bad && !told[where+key] {
				told[where+key] = true
				r.troublef("%s is erased, and %s holds words of it", key, where)
			}
		}
	}
	conn, err := pgx.Connect(t.Context(), r.pg.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var text bytes.Buffer
		if _, err := conn.PgConn().CopyTo(t.Context(), &text, `COPY `+table+` TO STDOUT`); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		look("table "+table, text.Bytes())
	}
	err = filepath.WalkDir(r.nats.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // the server writes meanwhile
		}
		content, err := os.ReadFile(path)
		if err == nil {
			look(path, content)
			if plainMark.Match(content) {
				r.troublef("%s holds what sessions say: %s", strings.TrimPrefix(path, r.nats.dir), plainMark.Find(content))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, s := range r.old {
		if r.rec.Acked(s.key) && !there[s.mark] {
			t.Errorf("the dump does not show %s, which was not erased", s.key)
			return
		}
	}
	t.Logf("%d erased sessions left nothing in %d tables", len(gone), len(tables))
}
