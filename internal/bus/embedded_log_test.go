package bus

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestAStartAfterAKillIsNoWarning(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	l := &serverLog{log: slog.New(slog.NewTextHandler(&said, nil))}
	l.Warnf("Filestore [%s] Stream state outdated, last block has additional entries, will rebuild", "JOBS")
	l.Warnf("JetStream is out of %s", "space")
	if got := said.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "level=INFO") {
		t.Errorf("%s", got)
	}
}
