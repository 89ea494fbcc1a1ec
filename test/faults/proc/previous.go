package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Previous builds the program as it was at a commit of this repository. The test
// is skipped where there is no such history.
func Previous(t testing.TB, ref string) (path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Skipf("no git history: %v", err)
	}
	root = strings.TrimSpace(root)
	if _, err := output(ctx, root, "git", "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err != nil {
		t.Skipf("the history has no %s (a shallow clone?)", ref)
	}
	dir := t.TempDir()
	tarball := filepath.Join(dir, "source.tar")
	path = filepath.Join(dir, "engined")
	source := filepath.Join(dir, "source")
	for _, step := range []struct {
		in   string
		args []string
	}{
		{root, []string{"git", "archive", "--output", tarball, ref}},
		{root, []string{"mkdir", source}},
		{source, []string{"tar", "-xf", tarball}},
		{source, []string{"go", "build", "-o", path, "./cmd/engined"}},
	} {
		if out, err := output(ctx, step.in, step.args...); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(step.args, " "), err, out)
		}
	}
	return path
}

func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, strings.TrimSpace(trouble.String()))
	}
	return out.String(), nil
}

// NewestTag is the newest tag of the history; "" where there is none.
func NewestTag(ctx context.Context) string {
	tag, err := output(ctx, ".", "git", "describe", "--tags", "--abbrev=0")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(tag)
}
