package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// locales are tried in turn. All are UTF-8 for character classes: trigram
// search finds nothing in Chinese, Japanese or Korean under plain C.
func locales(major int) [][]string {
	l := [][]string{
		{"--locale=C.UTF-8"},
		{"--locale=C", "--lc-ctype=C.UTF-8"},
		{"--locale=C", "--lc-ctype=en_US.UTF-8"},
		{"--locale=C", "--lc-ctype=UTF-8"}, // macOS
	}
	if major >= 17 {
		l = append(l, []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"})
	}
	return l
}

// initialise makes the cluster beside its final place and renames it there, so
// that pgdata is either absent or whole.
func initialise(ctx context.Context, d dataDir, b binaries, id identity, fast bool) error {
	if err := d.removeFresh(); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(d.path, freshPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) // Gone by then, unless something failed.
	if err := id.own(fresh); err != nil {
		return err
	}

	args := []string{
		"--username=" + Superuser, "--encoding=UTF8",
		// The socket's directory is the border; there is no other way in.
		"--auth-local=trust", "--auth-host=reject",
		"--no-instructions",
	}
	if fast {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums")
	}
	var errs []error
	for _, locale := range locales(b.major) {
		out, err := runInitdb(ctx, b, id, fresh, append(args, locale...))
		if err == nil {
			return os.Rename(fresh, d.pgdata())
		}
		errs = append(errs, fmt.Errorf("initdb %s: %w: %s", strings.Join(locale, " "), err, out))
		if !strings.Contains(out, "locale") || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func runInitdb(ctx context.Context, b binaries, id identity, dir string, args []string) (string, error) {
	var out strings.Builder
	p, err := spawn(child{
		path: b.path("initdb"), args: args, dataDir: dir, id: id,
		stdout: &out, deathSignal: syscall.SIGKILL,
	})
	if err != nil {
		return "", err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.signal(syscall.SIGTERM) // It removes what it made.
		<-p.done
		return "", ctx.Err()
	}
	return tail(out.String()), p.err
}
