package devpg

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("shows what root meets")
	}
}

func TestAnOrdinaryUserRunsACluster(t *testing.T) {
	t.Parallel()
	needRoot(t) // Otherwise all the other tests show it.
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	id, err := dropTo(u)
	if err != nil {
		t.Fatal(err)
	}
	dir := openTemp(t)
	if err := id.own(dir); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	cmd := helper(t, data, &syscall.SysProcAttr{Credential: id.credential()})
	if owner, err := ownerOf(filepath.Join(data, pgdataName)); err != nil || owner != id.uid {
		t.Errorf("the cluster belongs to uid %d (%v), want %d", owner, err, id.uid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	// Root takes over, as the owner it finds.
	c := start(t, data)
	if owner, err := ownerOf(c.SocketDir()); err != nil || owner != id.uid {
		t.Errorf("the socket belongs to uid %d (%v), want %d", owner, err, id.uid)
	}
}

func TestClusterCopiedByRootRuns(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := openTemp(t)
	c := start(t, dir)
	stop(t, c)
	if err := (identity{dropped: true}).ownAll(c.dir.pgdata()); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

func TestBlockedByNamesTheFirstClosedDirectory(t *testing.T) {
	t.Parallel()
	top := openTemp(t)
	closed := filepath.Join(top, "closed")
	inner := filepath.Join(closed, "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	me := os.Geteuid()
	for name, tc := range map[string]struct {
		id   identity
		dir  string
		want string
	}{
		"a stranger, closed parent": {identity{uid: me + 1, gid: -1, dropped: true}, inner, closed},
		"a stranger, open":          {identity{uid: me + 1, gid: -1, dropped: true}, top, ""},
		"the owner":                 {identity{uid: me, gid: -1, dropped: true}, inner, ""},
		"absent":                    {identity{uid: me, gid: -1, dropped: true}, filepath.Join(inner, "no"), filepath.Join(inner, "no")},
		"the caller is not checked": {identity{uid: me + 1}, inner, ""},
	} {
		if got := tc.id.blockedBy(tc.dir); got != tc.want {
			t.Errorf("%s (uid %s): blockedBy = %q, want %q", name, strconv.Itoa(tc.id.uid), got, tc.want)
		}
	}
}
