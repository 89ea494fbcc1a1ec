package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestScratchSweepsWhatKilledRunsLeft: a replay that was killed must not leave a
// session behind in the clear, and one that runs must not lose its own.
func TestScratchSweepsWhatKilledRunsLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	leave := func(name string, age time.Duration) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	running, end, err := scratch(base, "replay-")
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(running, long, long); err != nil {
		t.Fatal(err)
	}
	left, young, other := leave("replay-left", time.Hour), leave("replay-young", 0), leave("other-left", time.Hour)
	second, endSecond, err := scratch(base, "replay-")
	if err != nil {
		t.Fatal(err)
	}
	for dir, stays := range map[string]bool{running: true, left: false, young: true, other: true, second: true} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: %v, want it to stay: %v", filepath.Base(dir), err, stays)
		}
	}
	if err := errors.Join(end(), endSecond()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(running); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its end leaves it: %v", err)
	}
}
