package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/transcript"
)

// read reads the entries that show something, without their records' text.
func read(t *testing.T, text string) ([]transcript.Entry, transcript.Report) {
	t.Helper()
	all, report := readAll(t, text)
	var entries []transcript.Entry
	for _, e := range all {
		if e.Message != nil || e.Kind == "reset" || e.Kind == "leaf" {
			e.Raw = nil
			entries = append(entries, e)
		}
	}
	return entries, report
}

func readAll(t *testing.T, text string) ([]transcript.Entry, transcript.Report) {
	t.Helper()
	var entries []transcript.Entry
	report, err := transcript.Read(context.Background(), t.Name(), strings.NewReader(text), func(e transcript.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries, report
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outline is an entry in short: where it hangs and the start of its message.
func outline(entries []transcript.Entry) []string {
	var out []string
	for _, e := range entries {
		m := string(e.Message)
		out = append(out, fmt.Sprintf("%d %s %s<%s [%s] %.24s", e.Line, e.Kind, e.ParentID, e.ID, e.Session, m))
	}
	return out
}

const (
	header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`
	one    = `{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}`
	two    = `{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"two"}}`
)

func TestReadOpenClaw(t *testing.T) {
	t.Parallel()
	entries, report := read(t, strings.Join([]string{
		header,
		`{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		`{"type":"message","id":"a1","parentId":"m","timestamp":"2026-01-01T00:00:01.000Z","message": {"role":"user", "content":"\ud800 é","n":1.00} }`,
		`{"type":"custom_message","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","display":false,"customType":"x","content":"n","details":{"k":1.0}}`,
		`{"type":"branch_summary","id":"a3","parentId":"a2","timestamp":"2026-01-01T00:00:03.000Z","fromId":"a1","summary":"s"}`,
		`{"type":"compaction","id":"a4","parentId":"a3","summary":"s","firstKeptEntryId":"a1"}`,
		`{"type":"reset","id":"a5","parentId":"a4","reason":"new"}`,
		`{"type":"leaf","id":"a6","parentId":"a5","targetId":"a1"}`,
		`{"type":"label","id":"a7","parentId":"a6","targetId":"a1"}`,
		``,
	}, "\n"))
	want := []transcript.Entry{
		{ID: "a1", ParentID: "m", Kind: "message", Line: 3, Timestamp: 1767225601000, Message: []byte(`{"role":"user", "content":"\ud800 é","n":1.00}`)},
		{ID: "a2", ParentID: "a1", Kind: "custom_message", Line: 4, Timestamp: 1767225602000, Message: []byte(`{"role":"custom","customType":"x","content":"n","display":false,"details":{"k":1.0},"timestamp":1767225602000}`)},
		{ID: "a3", ParentID: "a2", Kind: "branch_summary", Line: 5, Timestamp: 1767225603000, Message: []byte(`{"role":"branchSummary","summary":"s","fromId":"a1","timestamp":1767225603000}`)},
		{ID: "a5", ParentID: "a4", Kind: "reset", Line: 7, Record: []byte(`{"type":"reset","id":"a5","parentId":"a4","reason":"new"}`)},
		{ID: "a6", ParentID: "a5", Kind: "leaf", Line: 8, Record: []byte(`{"type":"leaf","id":"a6","parentId":"a5","targetId":"a1"}`)},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	wantReport := transcript.Report{
		Format: transcript.OpenClaw, Version: 3, Messages: 3,
		Skipped: map[string]int{"session": 1, "model_change": 1, "compaction": 1, "reset": 1, "leaf": 1, "label": 1},
	}
	if diff := cmp.Diff(wantReport, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestATreesRecordsAreHandedOnAsTheyStand(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"type":"session","version":3,"id":"s"}`,
		`{"type":"model_change","id":"m","parentId":null, "n":1.0}`,
		`{"type":"message","id":"a","parentId":"m","message":{"role":"user","content":"x"}}`,
		`{"type":"label","id":"l","parentId":"a"}`,
		`{"type":"reset","id":"r","parentId":"l"}`,
	}
	entries, _ := readAll(t, strings.Join(lines, "\n")+"\n")
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Raw))
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Error(diff)
	}
	chat, _ := readAll(t, `{"role":"user","content":"x"}`+"\n")
	if len(chat) != 1 || chat[0].Raw != nil {
		t.Errorf("a chat has no tree: %+v", chat)
	}
}

func TestReadVersion1DerivesStableIDs(t *testing.T) {
	t.Parallel()
	text := sample(t, "pi-v1.jsonl")
	entries, report := read(t, text)
	if report.Version != 1 || report.Messages < 5 || len(report.Broken) > 0 {
		t.Fatalf("report %+v", report)
	}
	seen := map[string]bool{}
	parent := ""
	for _, e := range entries {
		if seen[e.ID] || e.ParentID != parent {
			t.Errorf("line %d: id %q (seen before: %v), parent %q, want %q", e.Line, e.ID, seen[e.ID], e.ParentID, parent)
		}
		seen[e.ID], parent = true, e.ID
		if !strings.Contains(text, string(e.Message)) {
			t.Errorf("line %d: message is not as in the file", e.Line)
		}
	}
	more := `{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"later"}}`
	longer, _ := read(t, strings.TrimRight(text, "\n")+"\n\n"+more+"\n")
	if diff := cmp.Diff(entries, longer[:len(entries)]); diff != "" {
		t.Errorf("a longer file gives other entries:\n%s", diff)
	}
}

func TestReadShapes(t *testing.T) {
	t.Parallel()
	entries, report := read(t, sample(t, "pi-shapes.jsonl"))
	if report.Messages != 21 || report.Skipped["compaction"] != 1 || len(report.Broken) > 0 {
		t.Fatalf("report %+v", report)
	}
	for _, e := range entries {
		m, err := message.Read(e.Message)
		if err != nil || m.Dialect != message.OpenClaw {
			t.Errorf("line %d: %+v, %v", e.Line, m, err)
		}
	}
}

func TestReadClaudeEdgeCases(t *testing.T) {
	t.Parallel()
	entries, report := read(t, sample(t, "claude-edge_cases.jsonl"))
	want := transcript.Report{
		Format: transcript.ClaudeCode, Messages: 13, Skipped: map[string]int{"summary": 1, "unknown": 1},
		Broken: []transcript.Broken{
			{Line: 11, Reason: "message is not an object"},
			{Line: 13, Reason: "not a JSON object"},
			{Line: 15, Reason: "not a JSON object"},
			{Line: 16, Reason: "not a JSON object"},
		},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if e := entries[0]; e.ID != "edge_001" || e.Kind != "user" || e.Timestamp != 1749898800000 {
		t.Errorf("first entry %+v", e)
	}
}

func TestReadClaudeSessionsAndSidechains(t *testing.T) {
	t.Parallel()
	entries, _ := read(t, sample(t, "claude-normalization-main.jsonl"))
	sessions := map[string]int{}
	for _, e := range entries {
		sessions[e.Session]++
	}
	want := map[string]int{"": 9, "claude-normalization-other": 2, "side-line-13": 1}
	if diff := cmp.Diff(want, sessions); diff != "" {
		t.Errorf("messages by session (-want +got):\n%s", diff)
	}

	rec := func(uuid, parent, more string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":"s",%s"message":{"role":"user","content":"x"}}`, uuid, parent, more)
	}
	side := `"isSidechain":true,`
	entries, _ = read(t, strings.Join([]string{
		rec("m1", "", ""),
		rec("a1", "", side), rec("b1", "", side), rec("a2", "a1", side), rec("b2", "b1", side), rec("a3", "a2", side),
		rec("c1", "m1", side+`"agentId":"7",`), rec("c2", "c1", side+`"agentId":"7",`),
		rec("m2", "m1", ""),
	}, "\n"))
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s:%s:%v", e.ID, e.Session, e.Sidechain))
	}
	wantChains := []string{
		"m1::false", "a1:side-a1:true", "b1:side-b1:true", "a2:side-a1:true", "b2:side-b1:true", "a3:side-a1:true",
		"c1:agent-7:true", "c2:agent-7:true", "m2::false",
	}
	if diff := cmp.Diff(wantChains, got); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

func TestReadChats(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"object":        {`{"model":"m","messages":[{"role":"user","content":"a"}, {"role":"assistant","content":"b"}]}`, []string{"|user", "|assistant"}},
		"pretty object": {"{\n \"system\": \"s\",\n \"messages\": [\n  {\"role\": \"user\", \"content\": \"a\"}\n ]\n}\n", []string{"|user"}},
		"array":         {`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]` + "\n", []string{"|user", "|assistant"}},
		"lines":         {`{"role":"user","content":"a"}` + "\n" + `{"role":"assistant","content":"b"}`, []string{"|user", "|assistant"}},
		"one line":      {`{"role":"user","content":"a"}`, []string{"|user"}},
		"chat a line":   {`{"messages":[{"role":"user","content":"a"}]}` + "\n" + `{"messages":[{"role":"user","content":"b"}]}`, []string{"line-1|user", "line-2|user"}},
		"runs":          {`[{"task_id":0,"traj":[{"role":"user","content":"a"}]},{"task_id":"x","traj":[{"role":"user","content":"b"}]},7]`, []string{"run-0-task-0|user", "run-1-task-x|user"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, report := read(t, tc.text)
			var got []string
			for _, e := range entries {
				m, err := message.Read(e.Message)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Session+"|"+map[message.Role]string{message.User: "user", message.Assistant: "assistant"}[m.Role])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || report.Format != transcript.Chat {
				t.Errorf("%s, messages (-want +got):\n%s", report.Format, diff)
			}
		})
	}
	entries, report := read(t, sample(t, "tau-bench.json"))
	sessions := map[string]bool{}
	for _, e := range entries {
		sessions[e.Session] = true
	}
	if len(sessions) != 2 || report.Messages != len(entries) || len(entries) < 10 {
		t.Errorf("tau-bench: %d sessions, report %+v", len(sessions), report)
	}
}

func TestReadDocumentsWithoutMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[]":                               "an empty JSON array",
		"[\n]\n":                           "an empty JSON array",
		`[{"sample_id":"x"},{"y":1}]`:      "a JSON array whose entries are no messages",
		"[\n{\"sample_id\":\"x\"}\n]":      "a JSON array whose entries are no messages",
		`[1,2]`:                            "a JSON array whose entries are no messages",
		"{\n\"conversation\":{\"a\":1}\n}": "a JSON object that holds no messages",
	} {
		report, err := transcript.Read(t.Context(), "f", strings.NewReader(text), func(transcript.Entry) error { return nil })
		if !errors.Is(err, transcript.ErrUnknownFormat) || strings.Count(err.Error(), "transcript") != 1 {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff([]transcript.Broken{{Line: 1, Reason: want}}, report.Broken); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestReadBehindAByteOrderMark(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		header + "\n" + one + "\n" + two + "\n", one, `[{"role":"user","content":"a"}]`, "[\n{\"role\":\"user\",\"content\":\"a\"}\n]\n",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
	} {
		plain, _ := read(t, text)
		marked, report := read(t, "\ufeff"+text)
		if diff := cmp.Diff(plain, marked); diff != "" || len(report.Broken) > 0 || len(plain) == 0 {
			t.Errorf("%q: %+v %s", text, report, diff)
		}
	}
}

func TestReadBrokenLines(t *testing.T) {
	t.Parallel()
	torn := one[:len(one)-20]
	for name, tc := range map[string]struct {
		text   string
		want   []string
		broken []transcript.Broken
	}{
		"truncated last line": {header + "\n" + one + "\n" + two[:50], []string{"a1"}, []transcript.Broken{{3, "truncated last line"}}},
		"invalid line":        {header + "\nnot json\n" + one + "\n" + two, []string{"a1", "a2"}, []transcript.Broken{{2, "invalid JSON"}}},
		"glued to a torn one": {header + "\n" + torn + two + "\n{}", []string{"a2"}, []transcript.Broken{{2, "invalid JSON"}}},
		"two on a line":       {header + "\n" + one + two + "\n", []string{"a1", "a2"}, nil},
		"NULs before":         {header + "\n" + strings.Repeat("\x00", 4096) + one + "\n" + two, []string{"a1", "a2"}, []transcript.Broken{{2, "NUL padding"}}},
		"only NULs":           {header + "\n" + one + "\n" + strings.Repeat("\x00", 4096), []string{"a1"}, []transcript.Broken{{3, "NUL padding"}}},
		"NULs within":         {header + "\n" + torn + "\x00\x00" + two, []string{"a2"}, []transcript.Broken{{2, "truncated last line"}}},
		"torn first line":     {header[:40] + "\n" + one + "\n" + two, []string{"a1", "a2"}, []transcript.Broken{{1, "invalid JSON"}}},
		"broken UTF-8":        {header + "\n" + strings.Replace(one, "one", "\xff", 1) + "\n" + two, []string{"a2"}, []transcript.Broken{{2, "not valid UTF-8"}}},
		"blank lines":         {"\n" + header + "\r\n\r\n" + one + "\r\n", []string{"a1"}, nil},
		"a block is no record": {
			header + "\n" + `{"type":"message","id":"x","message":{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"toolCall","id":"c"` + "\n" + one,
			[]string{"a1"},
			[]transcript.Broken{{2, "invalid JSON"}},
		},
		"a record within a torn one": {
			header + "\n" + `{"type":"progress","data":` + two + `,"x":` + "\n" + one,
			[]string{"a1"},
			[]transcript.Broken{{2, "invalid JSON"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, report := read(t, tc.text)
			var got []string
			for _, e := range entries {
				got = append(got, e.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s\n%s", diff, strings.Join(outline(entries), "\n"))
			}
			if diff := cmp.Diff(tc.broken, report.Broken); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadStops(t *testing.T) {
	t.Parallel()
	none := func(transcript.Entry) error { return nil }
	for name, text := range map[string]string{"empty": "", "prose": "hello\nworld\n", "another document": "{\n\"mapping\": {}\n}", "number": "7"} {
		if _, err := transcript.Read(context.Background(), name, strings.NewReader(text), none); !errors.Is(err, transcript.ErrUnknownFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	boom := errors.New("boom")
	calls := 0
	_, err := transcript.Read(context.Background(), "f", strings.NewReader(header+"\n"+one+"\n"+two), func(transcript.Entry) error {
		calls++
		return boom
	})
	if !errors.Is(err, boom) || calls != 1 {
		t.Errorf("error of fn: %v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = transcript.Read(ctx, "f", strings.NewReader(header+"\n"+one+"\n"+two), func(transcript.Entry) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err = transcript.Read(context.Background(), "f", iotest.ErrReader(boom), none); !errors.Is(err, boom) {
		t.Errorf("error of the reader: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"pi-v1.jsonl", "claude-edge_cases.jsonl", "claude-normalization-main.jsonl"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
	}
	f.Add([]byte(header + "\n" + one[:30] + two))
	f.Add([]byte(`[{"traj":[{"role":"user"}]},{"messages":null}]`))
	f.Add([]byte("{\n\"messages\":[{},7]}"))
	f.Add([]byte(`{"type":"session"}` + "\n" + one)) // a header without an id
	f.Fuzz(func(t *testing.T, b []byte) {
		keep := func(to *[]transcript.Entry) func(transcript.Entry) error {
			return func(e transcript.Entry) error {
				*to = append(*to, e)
				return nil
			}
		}
		var first, second []transcript.Entry
		report, err := transcript.Read(context.Background(), "f", bytes.NewReader(b), keep(&first))
		if err != nil && !errors.Is(err, transcript.ErrUnknownFormat) {
			t.Fatal(err)
		}
		messages := 0
		for _, e := range first {
			if e.ID == "" || e.Kind == "" || (e.Message == nil) == (e.Record == nil) {
				t.Fatalf("entry %+v", e)
			}
			if e.Message == nil {
				continue
			}
			messages++
			if err := message.Check(e.Message, message.Limits{Depth: 1 << 20}); err != nil {
				t.Fatalf("%q: %v", e.Message, err)
			}
		}
		if messages != report.Messages {
			t.Fatalf("%d messages, report %+v", messages, report)
		}
		if _, err := transcript.Read(context.Background(), "f", iotest.OneByteReader(bytes.NewReader(b)), keep(&second)); !errors.Is(err, transcript.ErrUnknownFormat) && err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("read again:\n%s", diff)
		}
	})
}
