package llm

import (
	"errors"
	"io"
	"net/http"
)

var (
	errRedirect = errors.New("redirects are not followed")
	errTooLong  = errors.New("the answer is larger than any summary")
)

// maxAnswer bounds what is read of one answer, events and reasoning of a stream
// included: a provider that never ends must not fill the process's memory.
const maxAnswer = 64 << 20

// HTTPClient is what the providers' clients use: no time limit of its own, since
// streams are watched, and no redirects, since they would carry the key and the
// conversation to somebody else.
func HTTPClient() *http.Client {
	return &http.Client{
		Transport:     bounded{http.DefaultTransport.(*http.Transport).Clone()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

// bounded is a transport whose answers end at maxAnswer.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: maxAnswer}
	return res, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
