package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/engined/engined/contextengine"
)

var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// answer writes v as JSON. It is for answers without messages.
func (c *call) answer(v any) error {
	buf := answers.Get().(*bytes.Buffer)
	defer recycle(&answers, buf)
	if err := encode(buf, v); err != nil {
		return err
	}
	return c.send(buf.Bytes())
}

func encode(buf *bytes.Buffer, v any) error {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return nil
}

const (
	// bigAnswer is where a slow reader could hold a goroutine.
	bigAnswer = 64 << 10
	// slowestRead is the pace, in bytes a second, below which it is cut off.
	slowestRead = 64 << 10
)

var jsonType = []string{"application/json"}

// send writes a finished JSON body.
func (c *call) send(body []byte) error {
	h := c.w.Header()
	if h["Content-Type"] == nil {
		h["Content-Type"] = jsonType
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	var control *http.ResponseController
	if len(body) > bigAnswer {
		control = http.NewResponseController(c.w.ResponseWriter)
		_ = control.SetWriteDeadline(time.Now().Add(30*time.Second + time.Duration(len(body)/slowestRead)*time.Second))
	}
	_, err := c.w.Write(body)
	if control != nil {
		_ = control.SetWriteDeadline(time.Time{}) // the connection serves others after this
	}
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// windowRest is a window's answer without its messages: two members of one name
// at the same depth cancel each other out in encoding/json.
type windowRest struct {
	*contextengine.AssembleResult
	withoutMessages
}

type withoutMessages struct {
	Messages struct{} `json:"messages"`
}

// answerWindow writes a window's messages as they are stored.
func (c *call) answerWindow(res *contextengine.AssembleResult) error {
	buf := answers.Get().(*bytes.Buffer)
	defer recycle(&answers, buf)
	if err := encodeWindow(buf, res); err != nil {
		return err
	}
	return c.send(buf.Bytes())
}

func encodeWindow(buf *bytes.Buffer, res *contextengine.AssembleResult) error {
	rest := answers.Get().(*bytes.Buffer)
	defer recycle(&answers, rest)
	if err := encode(rest, windowRest{AssembleResult: res}); err != nil {
		return err
	}
	size := rest.Len() + len(`{"messages":[],`) + len(res.Messages)
	for _, m := range res.Messages {
		size += len(m)
	}
	buf.Grow(size)
	buf.WriteString(`{"messages":[`)
	for i, m := range res.Messages {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(m)
	}
	buf.WriteString(`],`)
	buf.Write(rest.Bytes()[1:])
	return nil
}
