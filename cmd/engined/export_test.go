package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnExportImportsAsTheSameWindow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Postgres")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "session.jsonl")
	writeFile(t, file, strings.Join([]string{
		`{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z"}`,
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"before the reset"}}`,
		`{"type":"reset","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z"}`,
		`{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"kept \u00e9 1.0","n":1.0}}`,
		`{"type":"message","id":"d","parentId":"c","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"left aside"}],"stopReason":"stop"}}`,
		`{"type":"leaf","id":"e","parentId":"c","timestamp":"2026-01-01T00:00:05.000Z","targetId":"c"}`,
		`{"type":"message","id":"f","parentId":"c","timestamp":"2026-01-01T00:00:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"instead"}],"stopReason":"stop"}}`,
	}, "\n")+"\n")
	dev := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", filepath.Join(reachable(t), "data"))
	engined(t, "import", file, "--session", "one", "--url", dev.url).ok(t)
	first := engined(t, "window", "one", "--json", "--url", dev.url).ok(t).out
	if strings.Contains(first, "before the reset") || strings.Contains(first, "left aside") || !strings.Contains(first, `"n":1.0`) {
		t.Fatalf("the import does not follow its file: %s", first)
	}

	copied := filepath.Join(dir, "copy.jsonl")
	engined(t, "export", "one", "-o", copied, "--url", dev.url).ok(t)
	if got := engined(t, "export", "one", "-o", copied, "--url", dev.url); got.code != exitFailure || !strings.Contains(got.err, "exists") {
		t.Errorf("over a file that exists: %+v", got)
	}
	engined(t, "import", copied, "--session", "two", "--url", dev.url).ok(t)
	var windows [2]string
	for i, key := range []string{"one", "two"} {
		out := engined(t, "window", key, "--json", "--url", dev.url).ok(t).out
		windows[i] = out[strings.Index(out, `"messages"`):strings.Index(out, `"estimatedTokens"`)]
	}
	if windows[0] != windows[1] {
		t.Errorf("the copy's window differs:\n%s\n%s", windows[0], windows[1])
	}
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"message":{"role":"user","content":"kept \u00e9 1.0","n":1.0}`) {
		t.Errorf("a message lost its bytes:\n%s", text)
	}
	rows := engined(t, "export", "one", "--events", "--url", dev.url).ok(t).out
	if !strings.Contains(rows, `"type":"session.reset"`) || !strings.Contains(rows, `"type":"leaf.moved"`) {
		t.Errorf("all events:\n%s", rows)
	}
}
