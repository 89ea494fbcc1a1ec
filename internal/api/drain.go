package api

import (
	"io"
	"net/http"
	"time"
)

const (
	drainBytes = 16 << 20
	drainTime  = time.Second
)

// drain reads on, within bounds, where a request is refused before its body has
// arrived: many clients read no answer before they have sent everything, and
// meet a broken pipe instead of a refusal. A client that waits for leave to
// send ("Expect: 100-continue") has not sent it.
func (c *call) drain(p *Problem) {
	if c.r.Body == nil || c.r.Body == http.NoBody || c.r.Header.Get("Expect") != "" || p.Status == http.StatusRequestTimeout {
		return
	}
	control := http.NewResponseController(c.w.ResponseWriter)
	if control.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return // a writer without a connection: nobody is sending
	}
	// The bytes are of no use, and neither is the error that ends them: EOF
	// apart, the connection ends with the answer.
	if _, err := io.CopyN(io.Discard, c.r.Body, drainBytes); err == io.EOF { //nolint:errorlint // io.CopyN returns it as it is
		_ = control.SetReadDeadline(time.Time{})
		return
	}
	c.w.Header().Set("Connection", "close")
}
