package verify_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
	"github.com/engined/engined/internal/verify/verifytest"
)

func differences(t *testing.T, s *store.Store) []verify.Difference {
	t.Helper()
	var out []verify.Difference
	p, err := verify.All(t.Context(), s, func(d verify.Difference) error {
		out = append(out, d)
		return nil
	}, func(verify.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if p.Sessions == 0 || p.Events == 0 || p.Differences != int64(len(out)) {
		t.Errorf("progress %+v", p)
	}
	return out
}

func TestVerifyFindsWhatWasChangedAndNothingElse(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s, e := verifytest.Open(t, url)
	verifytest.Life(t, e, "k")
	if _, err := s.Erase(t.Context(), verifytest.Tenant, "nobody"); err == nil {
		t.Fatal("erased nobody")
	}
	if found := differences(t, s); len(found) > 0 {
		t.Fatalf("differences in what nobody changed: %+v", found)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, c := range verifytest.Corruptions() {
		t.Run(c.Name, func(t *testing.T) {
			verifytest.Backup(t, conn, true)
			tag, err := conn.Exec(t.Context(), c.SQL)
			if err != nil || tag.RowsAffected() == 0 {
				t.Fatalf("%s, %v", tag, err)
			}
			found := differences(t, s)
			ok := false
			for _, d := range found {
				ok = ok || d.What == c.What && d.Detail != "" && d.SID != ""
			}
			if !ok {
				t.Errorf("found %+v", found)
			}
			verifytest.Backup(t, conn, false)
		})
	}
	if found := differences(t, s); len(found) > 0 {
		t.Errorf("the test did not put all back: %+v", found)
	}
}
