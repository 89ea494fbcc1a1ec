package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// bodies recycles read buffers: decoding copies what it keeps.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBuffer is the largest buffer that goes back to a pool.
const keepBuffer = 1 << 20

func recycle(pool *sync.Pool, b *bytes.Buffer) {
	if b.Cap() <= keepBuffer {
		b.Reset()
		pool.Put(b)
	}
}

// decode reads the body, at most limit bytes of it, into v. Unknown members
// are ignored. Every fault is a problem that names its place.
func (c *call) decode(limit int64, v any) error { return c.decodeBig(limit, v, big{}) }

// decodeBig is decode for a body that is mostly messages.
func (c *call) decodeBig(limit int64, v any, messages big) error {
	buf, err := c.readBody(limit)
	if err != nil {
		return err
	}
	defer recycle(&bodies, buf)
	body := buf.Bytes()
	first := firstByte(body)
	if first == 0 && len(bytes.TrimSpace(body)) == 0 {
		if c.op.bodyOptional {
			return nil
		}
		return kindMalformed.problem("the body is empty; send a JSON object")
	}
	if !utf8.Valid(body) {
		p := kindMalformed.problem("the body is not valid UTF-8")
		p.Offset = invalidAt(body)
		return p
	}
	if messages.take != nil {
		if done, err := messages.unmarshal(body, v); done {
			return err
		}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return decodeProblem(err)
	}
	if first != '{' { // null, which encoding/json takes for "nothing to set"
		return kindValidation.problem("the body must be a JSON object")
	}
	return checkText(body)
}

func firstByte(b []byte) byte {
	if b = bytes.TrimLeft(b, " \t\r\n"); len(b) > 0 {
		return b[0]
	}
	return 0
}

func invalidAt(b []byte) int64 {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return int64(at)
}

func (c *call) readBody(limit int64) (*bytes.Buffer, error) {
	if err := checkContentType(c.r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	if c.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(c.w.ResponseWriter)
	// Unsupported by test recorders; then nobody is slow either.
	_ = control.SetReadDeadline(time.Now().Add(c.api.cfg.BodyTimeout))
	// The reader wants the server's own writer, to end the connection of a
	// client that goes on sending.
	var src io.Reader = http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit)
	switch encoding := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, readProblem(fmt.Errorf("gzip: %w", err), limit)
		}
		src = http.MaxBytesReader(c.w.ResponseWriter, z, limit)
	default:
		c.w.Header().Set("Accept-Encoding", "gzip, identity")
		return nil, kindMedia.problem("content encoding " + quote(encoding) + " is not supported; send gzip or none").field("Content-Encoding")
	}
	buf := bodies.Get().(*bytes.Buffer)
	if n := c.r.ContentLength; n > 0 {
		// A stated length is believed only so far.
		buf.Grow(int(min(n, keepBuffer)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(src); err != nil {
		recycle(&bodies, buf)
		return nil, readProblem(err, limit)
	}
	// The deadline would otherwise cut the connection while the call runs.
	_ = control.SetReadDeadline(time.Time{})
	return buf, nil
}

// checkContentType takes JSON, what curl -d says by itself, and silence.
func checkContentType(header string) error {
	if header == "" || header == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil {
		return kindMedia.problem("the content type can't be read; send application/json").field("Content-Type")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return kindMedia.problem("charset " + quote(charset) + " is not supported; JSON is UTF-8").field("Content-Type")
	}
	switch {
	case media == "application/json", media == "application/x-www-form-urlencoded":
		return nil
	case strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		return nil
	}
	return kindMedia.problem("content type " + quote(media) + " is not supported; send application/json").field("Content-Type")
}

// quote makes a client's word safe and short enough to be sent back.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most]
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "�"))
}

func tooLarge(limit int64) *Problem {
	p := kindTooLarge.problem(fmt.Sprintf("the body is larger than %d bytes", limit))
	p.Limit = limit
	return p
}

func readProblem(err error, limit int64) error {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return kindSlowBody.problem("the body did not arrive in time")
	}
	return kindMalformed.problem("the body can't be read: " + err.Error())
}

func decodeProblem(err error) error {
	var (
		syntax  *json.SyntaxError
		kind    *json.UnmarshalTypeError
		invalid *contextengine.InvalidError
	)
	switch {
	case errors.As(err, &invalid):
		return err
	case errors.As(err, &syntax):
		if strings.HasSuffix(syntax.Error(), "exceeded max depth") {
			return kindValidation.problem("the JSON is nested too deeply")
		}
		p := kindMalformed.problem(fmt.Sprintf("invalid JSON at byte %d: %s", syntax.Offset, syntax))
		p.Offset = syntax.Offset
		return p
	case errors.As(err, &kind):
		field := wireField(kind.Field)
		if field == "" {
			return kindValidation.problem("the body must be a JSON object, not " + kind.Value)
		}
		p := kindValidation.problem(field + ": " + quote(kind.Value) + " where " + wireType(kind) + " is expected").field(field)
		p.Offset = kind.Offset
		return p
	}
	return kindMalformed.problem("the body can't be read: " + err.Error())
}

// wireField drops the names of embedded Go structs from a field's path: on
// the wire they do not exist, and members there never begin with a capital.
func wireField(path string) string {
	parts := strings.Split(path, ".")
	kept := parts[:0]
	for _, p := range parts {
		if p != "" && (p[0] < 'A' || p[0] > 'Z') {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ".")
}

func wireType(e *json.UnmarshalTypeError) string {
	switch name := e.Type.Kind().String(); {
	case strings.HasPrefix(name, "int"):
		return "an integer"
	case name == "bool":
		return "true or false"
	case name == "string":
		return "a string"
	case name == "slice":
		return "an array"
	}
	return "an object"
}
