package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait; it is no expectation.
const Patience = 2 * time.Minute

// envRace, if set, builds the program with the race detector.
const envRace = "ENGINED_FAULT_RACE"

// scratch holds the program; it ends with the run.
var scratch string

// RemoveBinary removes what Binary made. TestMain calls it at the end.
func RemoveBinary() {
	if scratch != "" {
		_ = os.RemoveAll(scratch)
	}
}

// Binary is the program, built once a run.
var Binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "engined-faults-")
	if err != nil {
		return "", err
	}
	scratch = dir
	path := filepath.Join(dir, "engined")
	args := []string{"build", "-o", path}
	if os.Getenv(envRace) != "" {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/engined/engined/cmd/engined")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build engined: %w\n%s", err, out.String())
	}
	return path, nil
})

// Happens waits for a channel to close.
func Happens(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(Patience):
		t.Fatalf("waited in vain: %s", what)
	}
}
