package devpg

import (
	"io"
	"os"
	"strings"
)

const (
	// maxLog is the size from which a log starts anew.
	maxLog    = 8 << 20
	tailLines = 15
)

// serverLog is the server's log file from this start on.
type serverLog struct {
	*os.File
	path string
	from int64
}

func openLog(path string) (serverLog, error) {
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return serverLog{}, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return serverLog{}, err
	}
	from, err := f.Seek(0, io.SeekEnd)
	return serverLog{File: f, path: path, from: from}, err
}

// tail is the end of what the server said since this start.
func (l serverLog) tail() string {
	raw, err := os.ReadFile(l.path)
	if err != nil || int64(len(raw)) < l.from {
		return ""
	}
	return tail(string(raw[l.from:]))
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
