//go:build linux

package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/test/faults/proc"
)

// TestPostgresDiskIsFull fills the disk that the tables are on, under load: what
// Postgres has no room for is answered with 503, nothing acknowledged is lost,
// and work goes on once there is room, without a restart of anything.
func TestPostgresDiskIsFull(t *testing.T) {
	begin(t)
	disk := smallDisk(t, "64m")
	pg := newPostgres(t)
	dsn := pg.start(t)
	owner, err := os.Stat(pg.dataDirectory(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	st, ok := owner.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%T", owner.Sys())
	}
	space := filepath.Join(disk, "space")
	if err := errors.Join(os.Mkdir(space, 0o700), os.Chown(space, int(st.Uid), int(st.Gid))); err != nil {
		t.Fatal(err)
	}
	pg.exec(t, dsn, "CREATE TABLESPACE small LOCATION '"+space+"'")
	pg.exec(t, dsn, "CREATE DATABASE small TABLESPACE small")
	s := &stack{db: strings.Replace(dsn, "engined", "small", 1), nats: newNATS(t)}
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	s.worker(t, "worker")
	l := newLoad(t, nodes...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := l.run(ctx, t, 4)
	for range 2 {
		l.progress(ctx, t, 50)
		ballast := filepath.Join(disk, "ballast")
		fillUp(t, ballast)
		before := l.again.Load()
		await(t, "writes are refused", func() bool { return l.again.Load() >= before+20 })
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	l.progress(ctx, t, 50)
	stop()
	wait()
	l.settle(t, nodes[0].URL)
	l.audit(t, nodes[1].URL)
}

// dataDirectory is where the server's own user may write.
func (p *postgres) dataDirectory(t *testing.T, dsn string) (dir string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// smallDisk mounts a file system of its own, which needs root.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engined-faults-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		t.Skipf("a disk of its own cannot be mounted here (needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp writes a file until there is no room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			block = block[:len(block)/2]
		}
	}
}
