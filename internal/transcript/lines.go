package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

type line struct {
	number  int
	text    []byte // without its end
	ended   bool   // more may follow
	tooLong bool
}

type lineReader struct {
	r      *bufio.Reader
	limit  int // the longest line, in bytes
	number int
}

// next reads a line; of one over the limit only that it was there. io.EOF comes
// without a line.
func (l *lineReader) next() (line, error) {
	out := line{number: l.number + 1}
	for {
		part, err := l.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return out, err
		}
		if len(out.text)+len(part) > l.limit+1 {
			out.text, out.tooLong = nil, true
		}
		if !out.tooLong {
			out.text = append(out.text, part...)
		}
		switch {
		case err == nil:
			out.text, out.ended = bytes.TrimSuffix(out.text, []byte("\n")), true
			l.number++
			if _, err := l.r.Peek(1); errors.Is(err, io.EOF) {
				out.ended = false // the file's last line
			}
			return out, nil
		case errors.Is(err, io.EOF):
			if len(out.text) == 0 && !out.tooLong {
				return out, io.EOF
			}
			l.number++
			return out, nil
		}
	}
}

// blank is what stands between records: white space, and the NULs that a crash
// leaves where a file had grown but was not written.
const blank = " \t\r\n\x00"

// maxCandidates bounds how often a record is looked for within one torn line.
const maxCandidates = 10_000

// line reads the records of one line: one, as a rule.
func (rd *reader) line(l line) error {
	if l.tooLong {
		rd.broken(l.number, "line too long")
		return nil
	}
	text := bytes.Trim(l.text, " \t\r\n")
	if bytes.IndexByte(text, 0) >= 0 && len(text) > 0 && (text[0] == 0 || text[len(text)-1] == 0) {
		rd.broken(l.number, "NUL padding")
	}
	text = bytes.Trim(text, blank)
	if len(text) == 0 {
		return nil
	}
	if json.Valid(text) {
		return rd.record(l.number, text)
	}
	return rd.recover(l, text)
}

// recover reads what it can of a line that is no JSON: a record behind the torn
// end of another, or several on one line.
func (rd *reader) recover(l line, text []byte) error {
	told, tries := false, 0
	for len(text) > 0 {
		value, rest, ok := firstValue(text)
		if ok && (isRecord(value) || !told && isChat(value)) && separate(rest) {
			if err := rd.record(l.number, value); err != nil {
				return err
			}
			text = bytes.TrimLeft(rest, blank)
			continue
		}
		if !told {
			told = true
			reason := "invalid JSON"
			if !l.ended && text[0] == '{' && !ok {
				reason = "truncated last line"
			}
			rd.broken(l.number, reason)
		}
		at := nextCandidate(text[1:])
		if tries++; at < 0 || tries > maxCandidates {
			return nil
		}
		text = text[1+at:]
	}
	return nil
}

// firstValue splits text after its first JSON value.
func firstValue(text []byte) (value, rest []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	var v json.RawMessage
	if dec.Decode(&v) != nil {
		return nil, nil, false
	}
	return v, text[dec.InputOffset():], true
}

// separate tells whether a value is followed by nothing or by another one, and
// so is not a part of something larger.
func separate(rest []byte) bool {
	rest = bytes.TrimLeft(rest, blank)
	return len(rest) == 0 || rest[0] == '{'
}

// nextCandidate is where the next object that begins as records do may stand.
func nextCandidate(text []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '{')
		if i < 0 {
			return -1
		}
		i += from
		if bytes.HasPrefix(bytes.TrimLeft(text[i+1:min(len(text), i+16)], " \t"), []byte(`"type"`)) {
			return i
		}
		from = i + 1
	}
}

// isRecord tells a record from an object within one (a block of content has a
// type too).
func isRecord(value []byte) bool {
	return hasAny(value, "timestamp", "uuid", "leafUuid", "message", "sessionId", "version")
}

// isChat tells a plain message.
func isChat(value []byte) bool { return hasAny(value, "role") }

func hasAny(value []byte, names ...string) bool {
	var o members
	if json.Unmarshal(value, &o) != nil {
		return false
	}
	for _, name := range names {
		if _, ok := o[name]; ok {
			return true
		}
	}
	return false
}
