package devpg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAStartSweepsWhatKilledServersLeft, and nothing that may be in use.
func TestAStartSweepsWhatKilledServersLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	long := time.Now().Add(-2 * forgotten)
	for name, tc := range map[string]struct {
		age    time.Time
		socket bool
		stays  bool
	}{
		"engined-pg-left":    {age: long},
		"engined-pg-new":     {age: time.Now(), stays: true},
		"engined-pg-serving": {age: long, socket: true, stays: true},
		"other":              {age: long, stays: true},
	} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if tc.socket {
			if err := os.WriteFile(filepath.Join(dir, ".s.PGSQL.5432"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(dir, tc.age, tc.age); err != nil {
			t.Fatal(err)
		}
		sweepSockets(base)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) == tc.stays {
			t.Errorf("%s: %v, want it to stay: %v", name, err, tc.stays)
		}
	}
}

// TestAClaimedDirectoryIsNotSwept, however old it is.
func TestAClaimedDirectoryIsNotSwept(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "claim-") // as root, the server's user has to get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := serverIdentity(filepath.Join(base, "data"))
	if err != nil {
		t.Fatal(err)
	}
	dir, long := filepath.Join(base, "engined-pg-again"), time.Now().Add(-2*forgotten)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chtimes(dir, long, long), claimSocketDir(dir, id)); err != nil {
		t.Fatal(err)
	}
	sweepSockets(base)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
