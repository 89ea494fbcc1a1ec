package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

const (
	maxSessions = 10_000
	minMessage  = 256
	tenant      = "default"
)

// sessionKey names a session of one side; all keys of a side and spread are
// equally long. They hold no colon, which pgbench would take for a variable.
func sessionKey(side string, sessions, i int) string {
	return fmt.Sprintf("bench-%s-%d-%04d", side, sessions, i)
}

// payload is an assistant's message as OpenClaw writes it, n bytes long.
func payload(n int) []byte {
	const words = "The retry in upload.go waits for the whole body again, so a slow disk doubles the time; " +
		"I moved the checksum before the copy and added a case for it. "
	m := map[string]any{
		"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
		"stopReason": "stop", "timestamp": time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).UnixMilli(),
		"usage": map[string]any{"input": 2301, "output": 212, "cacheRead": 18240, "cacheWrite": 512},
	}
	text := func(s string) []byte {
		m["content"] = []map[string]string{{"type": "text", "text": s}}
		b, err := json.Marshal(m)
		if err != nil {
			panic(err) // of strings and numbers
		}
		return b
	}
	room := max(n-len(text("")), 0)
	return text(strings.Repeat(words, room/len(words)+1)[:room])
}

// appendSQL is the call that the node makes for one ingest outside of a batch.
// All but session and key is constant, which spares pgbench the sending and
// parsing of a kilobyte that the node's call has to pay.
func appendSQL(size int, session, key string) string {
	body := payload(size)
	m, err := message.Read(body)
	if err != nil {
		panic(err) // of a message of our own making
	}
	f := m.Facts(tokens.Message)
	hash := sha256.Sum256(body)
	links := "NULL"
	if l := message.EncodeLinks(f); l != nil {
		links = fmt.Sprintf(`'\x%x'`, l)
	}
	flags := int32(f.Flags) | int32(f.Dialect)<<24
	return strings.NewReplacer(
		"$session", session, "$key", key, "$hash", fmt.Sprintf(`'\x%x'`, hash), "$body", fmt.Sprintf(`'\x%x'`, body),
		"$version", strconv.Itoa(message.ReaderVersion), "$role", strconv.Itoa(int(f.Role)),
		"$tokens", strconv.Itoa(f.Tokens), "$flags", strconv.Itoa(int(flags)), "$links", links, "$tenant", tenant,
	).Replace(`SELECT o_verdict, o_sid, o_head, o_host_head, o_epoch, o_debt, o_seq, o_known FROM append_events('$tenant', false, 128000, 850, ` +
		`ARRAY[$session]::text[], ARRAY[gen_random_uuid()], ARRAY[true], ARRAY[true], ARRAY['']::text[], ` +
		`ARRAY['']::text[], ARRAY[-1]::bigint[], ARRAY[-1]::bigint[], ARRAY['']::text[], ARRAY[0], ARRAY[0]::bigint[], ` +
		`ARRAY[false], ARRAY[1], ARRAY[true], ARRAY[false], ` +
		`ARRAY[1], ARRAY[1]::smallint[], ARRAY[$hash]::bytea[], ARRAY[$body]::bytea[], ARRAY[$version]::smallint[], ` +
		`ARRAY[$role]::smallint[], ARRAY[$tokens]::integer[], ARRAY[$flags]::integer[], ARRAY[$links]::bytea[], ` +
		`ARRAY[1]::smallint[], ARRAY[convert_to($key, 'UTF8')], ARRAY[0]::smallint[], ARRAY[NULL]::bytea[])`)
}
