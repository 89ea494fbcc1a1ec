package devpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version of Postgres that is used.
const MinMajor = 14

// EnvBinDir names the environment variable that overrides the search for
// server binaries: a directory that holds postgres and initdb.
const EnvBinDir = "ENGINED_PG_BIN"

// binaries is one installation of the server.
type binaries struct {
	dir     string
	major   int
	version string
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// installGlobs are the places packagers put server binaries that are not on
// PATH.
var installGlobs = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // PGDG on Red Hat
	"/usr/libexec/postgresql*",                           // Alpine
	"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew, arm64
	"/usr/local/opt/postgresql*/bin",                     // Homebrew, x64
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew, Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                               // built from source
}

// findBinaries picks a server: binDir or ENGINED_PG_BIN alone where set, else
// PATH, then the newest of the usual places, then a downloaded one. A major
// other than 0 must match, since a cluster runs under its own version only.
func findBinaries(ctx context.Context, binDir string, major int, id identity, log *slog.Logger) (binaries, error) {
	if dir := cmp.Or(binDir, os.Getenv(EnvBinDir)); dir != "" {
		b, err := probe(ctx, dir, id)
		if err != nil {
			return b, fmt.Errorf("%w: %s: %w", ErrNoBinaries, dir, err)
		}
		if major != 0 && b.major != major {
			return b, fmt.Errorf("%w: made by PostgreSQL %d, %s holds %s", ErrVersion, major, dir, b.version)
		}
		return b, nil
	}

	found, unusable := installed(ctx, id)
	for _, b := range found {
		if major == 0 || b.major == major {
			return b, nil
		}
	}
	if major != 0 && major != downloadMajor {
		return binaries{}, fmt.Errorf("%w: made by PostgreSQL %d, found %s; install PostgreSQL %d, or set %s to its binaries",
			ErrVersion, major, describe(found), major, EnvBinDir)
	}

	dir, err := download(ctx, log)
	if err == nil {
		var b binaries
		if b, err = probe(ctx, dir, id); err == nil {
			return b, nil
		}
	}
	unusable = append(unusable, fmt.Errorf("download: %w", err))
	return binaries{}, fmt.Errorf("%w: install one (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install "+
		"postgresql-server postgresql-contrib; macOS: brew install postgresql@17), or set %s to the directory of its "+
		"binaries, or set DATABASE_URL to a running server\n%w", ErrNoBinaries, EnvBinDir, errors.Join(unusable...))
}

// installed lists the usable servers of this machine, best first, and says
// why others are not usable.
func installed(ctx context.Context, id identity) (found []binaries, unusable []error) {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	onPath := len(dirs)
	for _, g := range installGlobs {
		m, _ := filepath.Glob(g) // The only error is a bad pattern.
		dirs = append(dirs, m...)
	}
	var rest []binaries
	for i, dir := range dirs {
		b, err := probe(ctx, dir, id)
		switch {
		case err != nil:
			unusable = append(unusable, fmt.Errorf("%s: %w", dir, err))
		case i < onPath:
			found = append(found, b)
		default:
			rest = append(rest, b)
		}
	}
	slices.SortStableFunc(rest, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return append(found, rest...), unusable
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// probe asks the server in dir for its version.
func probe(ctx context.Context, dir string, id identity) (binaries, error) {
	b := binaries{dir: dir}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(b.path(name)); err != nil {
			return b, fmt.Errorf("no %s: %w", name, err)
		}
	}
	if blocked := id.blockedBy(dir); blocked != "" {
		return b, fmt.Errorf("user %s cannot enter %s", id.name, blocked)
	}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("postgres --version: %w: %s", err, strings.TrimSpace(string(out)))
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return b, fmt.Errorf("postgres --version: cannot read %q", out)
	}
	b.version = string(m[1])
	if b.major, err = strconv.Atoi(string(m[2])); err != nil {
		return b, fmt.Errorf("postgres --version: %w", err)
	}
	if b.major < MinMajor {
		return b, fmt.Errorf("PostgreSQL %s is older than %d", b.version, MinMajor)
	}
	return b, nil
}

func describe(found []binaries) string {
	if len(found) == 0 {
		return "none"
	}
	var s []string
	for _, b := range found {
		s = append(s, b.version)
	}
	return strings.Join(s, ", ")
}
