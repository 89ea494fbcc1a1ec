package devpg

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnknownDirectoryIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files map[string]string
		want  error
	}{
		"somebody's files":     {map[string]string{"thesis.tex": "x"}, ErrForeignDir},
		"a bare cluster":       {map[string]string{"PG_VERSION": "15\n", "base/1/2": "x"}, ErrForeignDir},
		"no version":           {map[string]string{"pgdata/base/1": "x"}, ErrForeignDir},
		"a version too old":    {map[string]string{"pgdata/PG_VERSION": "9.6\n"}, ErrVersion},
		"a version from hell":  {map[string]string{"pgdata/PG_VERSION": "banana\n"}, ErrVersion},
		"a version not here":   {map[string]string{"pgdata/PG_VERSION": "99\n"}, ErrVersion},
		"an empty version":     {map[string]string{"pgdata/PG_VERSION": ""}, ErrVersion},
		"a log and a stranger": {map[string]string{"postgres.log": "x", "notes": "x"}, ErrForeignDir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, text := range tc.files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Start(t.Context(), Options{DataDir: dir}); !errors.Is(err, tc.want) {
				t.Errorf("Start = %v, want %v", err, tc.want)
			}
			if d := cmp.Diff(tc.files, readTree(t, dir)); d != "" {
				t.Errorf("the directory was touched (-want +got):\n%s", d)
			}
		})
	}
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestKilledInitdbIsForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, freshPrefix+"123", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	if got, want := slices.Sorted(maps.Keys(topLevel(t, dir))), []string{pgdataName, logName}; !cmp.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

func topLevel(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}
