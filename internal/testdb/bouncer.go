package testdb

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bounce puts a PgBouncer in transaction mode before a database and answers with
// its DSN there: whatever a test does shares few connections of the server's, each
// transaction on another one. The test is skipped where there is no pgbouncer.
func Bounce(t testing.TB, dsn string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; !isFile(path) {
			t.Skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
		}
	}
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(scratch(), "engined-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	password := ""
	if server.Password != "" {
		password = " password=" + server.Password
	}
	ini := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
server_reset_query =
log_connections = 0
log_disconnections = 0
`, server.Host, server.Port, server.User, password, port)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil { // the pooler is another user
		t.Fatal(err)
	}
	cmd := exec.Command(path, file) //nolint:noctx // ended by a signal
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = asOwner(t, server.Host) // it refuses to run as root
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is told to end below
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-done
	})
	u := url.URL{
		Scheme: "postgres", User: url.User(server.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path: server.Database, RawQuery: "sslmode=disable",
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !answers(ctx, u.String()) {
		select {
		case <-done:
			t.Fatalf("pgbouncer has ended:\n%s", text(said))
		case <-ctx.Done():
			t.Fatalf("pgbouncer does not answer:\n%s", text(said))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return u.String()
}

func text(f *os.File) string {
	raw, _ := os.ReadFile(f.Name()) // for a failing test to show
	return string(raw)
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener's
}

// asOwner is who may use a socket's directory; nobody where the server is reached
// otherwise.
func asOwner(t testing.TB, host string) *syscall.SysProcAttr {
	t.Helper()
	if fi, err := os.Stat(host); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
		}
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("pgbouncer does not run as root, and there is no other user: %v", err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
