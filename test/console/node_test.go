package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const program = "../../bin/engined"

var (
	shots = flag.String("shots", "", "a directory for screenshots of every view")

	theBrowser context.Context
	theNode    *node
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	browser := findBrowser()
	if browser == "" {
		fmt.Println("console-check: skipped, there is no Chromium here (Debian: apt-get install chromium); ENGINED_BROWSER names another one")
		return 0
	}
	dir, err := os.MkdirTemp("", "engined-console-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres' own user passes through
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var stop func()
	if theBrowser, stop, err = startBrowser(browser, filepath.Join(dir, "profile")); err != nil {
		fmt.Fprintln(os.Stderr, "console-check:", err)
		return 1
	}
	defer stop()
	if theNode, err = startNode(filepath.Join(dir, "data")); err != nil {
		fmt.Fprintln(os.Stderr, "console-check:", err)
		return 1
	}
	defer theNode.stop()
	if err := theNode.feed(dir); err != nil {
		fmt.Fprintln(os.Stderr, "console-check:", err)
		return 1
	}
	return m.Run()
}

// node is an engined of its own.
type node struct {
	base, key string
	// database is how others reach its Postgres.
	database string
	// demo is the transcript of its big session.
	demo    string
	process *exec.Cmd
}

var consoleURL = regexp.MustCompile(`console +(http://[^/]+)/console/`)

var databaseURL = regexp.MustCompile(`psql '([^']+)'`)

func startNode(data string, flags ...string) (*node, error) {
	n := &node{process: exec.Command(program, append([]string{"dev", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)}
	var said lockedBuffer
	n.process.Stdout, n.process.Stderr = &said, &said
	if err := n.process.Start(); err != nil {
		return nil, fmt.Errorf("%w; run make build first", err)
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if found := consoleURL.FindStringSubmatch(said.String()); found != nil {
			n.base = found[1]
			if found := databaseURL.FindStringSubmatch(said.String()); found != nil {
				n.database = found[1]
			}
			return n, nil
		}
		if n.process.ProcessState != nil {
			break
		}
	}
	n.stop()
	return nil, errors.New("the node does not say where its console is:\n" + said.String())
}

func (n *node) stop() {
	_ = n.process.Process.Signal(syscall.SIGTERM)
	_ = n.process.Wait()
}

// The sessions that all tests look at; one that a test changes is its own.
const (
	big    = "demo:big"
	agents = "import:viewer-agents"
)

// feed imports the bundled transcripts.
func (n *node) feed(dir string) error {
	packed, err := os.Open("../../cmd/engined/demo/session.jsonl.gz")
	if err != nil {
		return err
	}
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	plain, err := os.Create(filepath.Join(dir, "demo.jsonl"))
	if err != nil {
		return err
	}
	if _, err := io.Copy(plain, zip); err != nil {
		return err
	}
	if err := plain.Close(); err != nil {
		return err
	}
	n.demo = plain.Name()
	if err := n.engined("import", "--session", big, n.demo); err != nil {
		return err
	}
	found, err := filepath.Glob("../transcripts/testdata/*/*.jsonl")
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no transcripts: %w", err)
	}
	return n.engined(append([]string{"import"}, found...)...)
}

func (n *node) engined(args ...string) error {
	cmd := exec.Command(program, append(args, "--url", n.base, "--key", n.key)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("engined %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// call asks the API; body "" is a GET.
func (n *node) call(t *testing.T, path, body string) map[string]any {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, n.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if n.key != "" {
		req.Header.Set("Authorization", "Bearer "+n.key)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %v", path, answer.StatusCode, err, out)
	}
	return out
}

func (n *node) status(t *testing.T, path string) int {
	t.Helper()
	answer, err := http.Get(n.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// rawMessage is a message's bytes as the API sends them.
func (n *node) rawMessage(t *testing.T, key, seq string) string {
	t.Helper()
	number, err := strconv.Atoi(seq)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(fmt.Sprintf("%s%s/events?after=%d&limit=1", n.base, sessionPath(key), number-1))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct {
		Events []struct{ Message json.RawMessage }
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || len(page.Events) != 1 {
		t.Fatal(err, page)
	}
	return string(page.Events[0].Message)
}

func pathEscape(key string) string { return url.PathEscape(key) }

func sessionPath(key string) string { return "/v1/sessions/" + url.PathEscape(key) }

// say stores messages of a user, one a text.
func (n *node) say(t *testing.T, key string, texts ...string) {
	t.Helper()
	var messages []string
	for _, text := range texts {
		messages = append(messages, `{"role":"user","content":`+js(text)+`}`)
	}
	n.call(t, sessionPath(key)+"/ingest-batch", `{"messages":[`+strings.Join(messages, ",")+`]}`)
}

// js is a value as JavaScript, which JSON is a part of.
func js(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and numbers
	}
	return strings.TrimSpace(b.String())
}
