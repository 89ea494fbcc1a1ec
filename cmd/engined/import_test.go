package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
)

// fakeNode keeps what an import sends, with the rules of the wire about keys.
type fakeNode struct {
	mu       sync.Mutex
	sessions map[string][]string
	known    map[string]string // session and key → message
	records  []string          // of transcripts, that are no messages
	calls    int
	// refuse answers 422 for batches with a message that holds it, away fails
	// that many calls first.
	refuse string
	away   int
}

func (f *fakeNode) IngestBatch(_ context.Context, key string, messages []json.RawMessage, keys []string) (contextengine.IngestBatchResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	var res contextengine.IngestBatchResult
	if f.away > 0 {
		f.away--
		return res, &client.Problem{Status: 503, Title: "Unavailable", RetryAfter: "1"}
	}
	for i, m := range messages {
		if f.refuse != "" && strings.Contains(string(m), f.refuse) {
			return res, &client.Problem{Status: 422, Title: "Invalid", Detail: "not this one"}
		}
		if old, ok := f.known[key+"\x00"+keys[i]]; ok && old != string(m) {
			return res, &client.Problem{Status: 409, Type: "x/idempotency-conflict"}
		}
	}
	if f.sessions == nil {
		f.sessions, f.known = map[string][]string{}, map[string]string{}
	}
	for i, m := range messages {
		if _, ok := f.known[key+"\x00"+keys[i]]; ok {
			continue
		}
		f.known[key+"\x00"+keys[i]] = string(m)
		f.sessions[key] = append(f.sessions[key], string(m))
		res.IngestedCount++
	}
	res.Head = int64(len(f.sessions[key]))
	return res, nil
}

func (f *fakeNode) Transcript(_ context.Context, key string, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	var res contextengine.TranscriptResult
	if f.away > 0 {
		f.away--
		return res, &client.Problem{Status: 503, Title: "Unavailable", RetryAfter: "1"}
	}
	for _, raw := range p.Entries {
		if f.refuse != "" && strings.Contains(string(raw), f.refuse) {
			return res, &client.Problem{Status: 422, Title: "Invalid", Detail: "not this one"}
		}
	}
	if f.sessions == nil {
		f.sessions, f.known = map[string][]string{}, map[string]string{}
	}
	for _, raw := range p.Entries {
		var e struct{ Message json.RawMessage }
		if err := json.Unmarshal(raw, &e); err != nil {
			return res, err
		}
		at := fmt.Sprint(key, "\x00", p.SessionID, "\x00", string(raw))
		if _, ok := f.known[at]; ok {
			res.Duplicates++
			continue
		}
		f.known[at] = string(raw)
		res.Stored++
		if e.Message != nil {
			f.sessions[key] = append(f.sessions[key], string(e.Message))
			res.Messages++
		} else {
			f.records = append(f.records, string(raw))
		}
	}
	res.Head = int64(len(f.sessions[key]))
	return res, nil
}

// bring imports text as a file into the session s.
func (f *fakeNode) bring(t *testing.T, text string) *fileReport {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	writeFile(t, path, text)
	p := newProgress(newOutput(), false, frozen)
	at := make(chan time.Time)
	close(at)
	im := &importer{node: f, key: "s", batch: 3, progress: p, pause: func(time.Duration) <-chan time.Time { return at }}
	r := im.file(t.Context(), path)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r
}

// line is an entry of an OpenClaw transcript.
func line(id, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"message":{ "role":"user", "content":%q }}`+"\n", id, text)
}

const header = `{"type":"session","version":3,"id":"x"}` + "\n"

func TestImportingAgainAddsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	f := &fakeNode{}
	text := header + line("a", "one") + line("b", "one") + line("c", "two") + line("d", "three")
	if r := f.bring(t, text); r.New != 4 || r.AlreadyThere != 0 {
		t.Errorf("first: %+v", r)
	}
	if r := f.bring(t, text); r.New != 0 || r.AlreadyThere != 4 {
		t.Errorf("again: %+v", r)
	}
	if r := f.bring(t, text+line("e", "four")); r.New != 1 || r.AlreadyThere != 4 {
		t.Errorf("longer: %+v", r)
	}
	want := []string{"one", "one", "two", "three", "four"}
	for i := range want {
		want[i] = fmt.Sprintf(`{ "role":"user", "content":%q }`, want[i])
	}
	if diff := cmp.Diff(want, f.sessions["s"]); diff != "" {
		t.Error(diff)
	}
}

func TestEntriesWithoutIDsImportOnceToo(t *testing.T) {
	t.Parallel()
	f := &fakeNode{}
	text := strings.Repeat(`{"role":"user","content":"same"}`+"\n", 5)
	f.bring(t, text)
	if r := f.bring(t, text+`{"role":"user","content":"same"}`+"\n"); r.New != 1 || r.AlreadyThere != 5 {
		t.Errorf("longer: %+v", r)
	}
}

func TestOneIDBeforeTwoMessagesKeepsBoth(t *testing.T) {
	t.Parallel()
	f := &fakeNode{}
	if r := f.bring(t, header+line("a", "one")+line("a", "two")+line("a", "one")); r.New != 2 || r.AlreadyThere != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsBrokenOrRefusedIsReported(t *testing.T) {
	t.Parallel()
	f := &fakeNode{refuse: "poison"}
	r := f.bring(t, header+line("a", "one")+"{torn\n"+line("b", "poison")+line("c", "two")+`{"type":"compaction","id":"z"}`+"\n")
	if r.New != 2 || len(f.sessions["s"]) != 2 {
		t.Errorf("%+v", r)
	}
	slices.SortFunc(r.Broken, func(a, b brokenLine) int { return a.Line - b.Line })
	if len(r.Broken) != 2 || r.Broken[0].Line != 3 || r.Broken[1].Line != 4 || !strings.Contains(r.Broken[1].Reason, "not this one") {
		t.Errorf("broken %+v", r.Broken)
	}
	if r.Skipped["compaction"] != 1 {
		t.Errorf("skipped %+v", r.Skipped)
	}
}

func TestResetsAndLeafMovesAreReplayed(t *testing.T) {
	t.Parallel()
	f := &fakeNode{}
	reset, leaf := `{"type":"reset","id":"r","parentId":"a"}`, `{"type":"leaf","id":"l","targetId":"a"}`
	r := f.bring(t, header+line("a", "one")+reset+"\n"+line("b", "two")+leaf+"\n"+`{"type":"label","id":"x","parentId":"l"}`+"\n")
	if diff := cmp.Diff(map[string]int{"reset": 1, "leaf": 1}, r.Replayed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"session": 1, "label": 1}, r.Skipped); diff != "" {
		t.Error(diff)
	}
	want := []string{strings.TrimSpace(header), reset, leaf, `{"type":"label","id":"x","parentId":"l"}`}
	if diff := cmp.Diff(want, f.records); diff != "" {
		t.Error(diff)
	}
	if r.New != 2 {
		t.Errorf("%+v", r)
	}
}

func TestANodeThatIsAwayForAWhileGetsEverything(t *testing.T) {
	t.Parallel()
	f := &fakeNode{away: 3}
	if r := f.bring(t, header+line("a", "one")+line("b", "two")); r.New != 2 {
		t.Errorf("%+v", r)
	}
}

func TestANodeThatStaysAwayEndsTheImport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chat.jsonl")
	writeFile(t, path, `{"role":"user","content":"x"}`+"\n")
	got := engined(t, "import", path, "--url", "http://127.0.0.1:1")
	if got.code != exitFailure || !strings.Contains(got.err, "no answer from") {
		t.Errorf("%+v", got)
	}
}

func TestFilesOfOneNameDoNotMeet(t *testing.T) {
	t.Parallel()
	keys, err := sessionKeys([]string{"a/x.jsonl", "a/y.z.json", "a/x.jsonl"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"import:x", "import:y.z", "import:x"}, keys); diff != "" {
		t.Error(diff)
	}
	if _, err := sessionKeys([]string{"a/x.jsonl", "b/x.jsonl"}, ""); err == nil {
		t.Error("two files of one name were given one session")
	}
	if keys, err := sessionKeys([]string{"a/x.jsonl", "b/x.jsonl"}, "mine"); err != nil || keys[0] != "mine" || keys[1] != "mine" {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	now := frozen()
	out := newOutput()
	p := newProgress(out, true, func() time.Time { return now })
	p.begin("dir/session.jsonl", 4<<20)
	r := p.count(strings.NewReader(strings.Repeat("x", 1<<20)))
	now = now.Add(2 * time.Second)
	_, _ = r.Read(make([]byte, 1<<20))
	now = now.Add(time.Second)
	p.messages(1500)
	p.end(&fileReport{})
	want := "\r\x1b[Ksession.jsonl  [██████··················]  25%  1.0 MiB  0 messages  0/s" +
		"\r\x1b[Ksession.jsonl  [██████··················]  25%  1.0 MiB  1,500 messages  500/s" +
		"\r\x1b[Ksession.jsonl  1.0 MiB, 1,500 messages in 3s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	at := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"message":{"role":"user","content":"x"}}`+"\n", id, parent)
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a list":                     {header + at("a", "") + at("b", "a") + at("c", "b"), false},
		"a label in between":         {header + at("a", "") + `{"type":"label","id":"l","parentId":"a"}` + "\n" + at("b", "l"), false},
		"parents that are not there": {header + at("a", "x") + at("b", "y"), false},
		"no ids":                     {`{"type":"message","message":{"role":"user","content":"x"}}` + "\n" + `{"type":"message","message":{"role":"user","content":"x"}}` + "\n", false},
		"a chat":                     {`{"role":"user","content":"x"}` + "\n", false},
		"a branch":                   {header + at("a", "") + at("b", "a") + at("c", "a"), true},
		"a reset":                    {header + at("a", "") + `{"type":"reset","id":"r","parentId":"a"}` + "\n", true},
		"a leaf move":                {header + at("a", "") + `{"type":"leaf","id":"l","targetId":null}` + "\n", true},
	} {
		if got := branches(t.Context(), name, strings.NewReader(c.text)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTheStandardInputIsAFileLikeOthers: what came from a file is known when it
// comes from a pipe, and the other way round.
func TestTheStandardInputIsAFileLikeOthers(t *testing.T) {
	t.Parallel()
	f := &fakeNode{}
	list := header + line("a", "one") + line("b", "two")
	f.bring(t, list)
	im := &importer{node: f, key: "s", batch: 3, progress: newProgress(newOutput(), false, frozen), stdin: strings.NewReader(list + line("c", "three"))}
	if r := im.file(t.Context(), "-"); r.err != nil || r.AlreadyThere != 2 || r.New != 1 {
		t.Errorf("%+v", r)
	}
	if r := f.bring(t, list+line("c", "three")); r.New != 0 {
		t.Errorf("the pipe's are new to the file: %+v", r)
	}
	if got := engined(t, "import", "-"); got.code != exitUsage || !strings.Contains(got.err, "say --session") {
		t.Errorf("without a name: %+v", got)
	}
}

// TestAFileThatFailsHasNoRow, since a table of nothing says nothing.
func TestAFileThatFailsHasNoRow(t *testing.T) {
	t.Parallel()
	url := nodeThatSays(t, map[string]string{"/healthz": `{}`})
	if got := engined(t, "import", "/nowhere.jsonl", "--url", url); got.code != exitFailure || got.out != "" || strings.Count(got.err, "/nowhere.jsonl") != 1 {
		t.Errorf("%+v", got)
	}
}
