package llm

import (
	"errors"
	"net/http"
)

// HTTPClient is what the providers' clients use: no time limit of its own, since
// streams are watched, and no redirects, since they would carry the key and the
// conversation to somebody else.
func HTTPClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirects are not followed")
		},
	}
}
