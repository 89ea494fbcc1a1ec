package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client talks to one node. Its methods may be called at the same time.
type Client struct {
	base string
	key  string
	http *http.Client
}

// New makes a client of the node at base, such as http://127.0.0.1:7420. The
// API key may be empty. A call lives as long as its context.
func New(base, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a node", base)
	}
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{}}, nil
}

// TrustCA has the client trust the certificate authorities of a PEM file beside
// the system's. It is called before the first call.
func (c *Client) TrustCA(pem []byte) error {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New("there is no certificate in it")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one, unless a program replaced it
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	c.http.Transport = transport
	return nil
}

// URL is the node's.
func (c *Client) URL() string { return c.base }

// Close gives idle connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// sessionPath is a path under a session, its key percent-encoded.
func sessionPath(key, call string) string {
	path := "/v1/sessions/" + url.PathEscape(key)
	if call != "" {
		path += "/" + call
	}
	return path
}

// request makes a call; the caller closes the body of an answer of 2xx. Any
// other answer is a *Problem.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok { // it names the URL once more
			err = of.Err
		}
		return nil, &UnreachableError{URL: c.base, Err: err}
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	p := readProblem(res)
	p.Keyed = c.key != ""
	return nil, p
}

// call makes a call and returns the answer's body.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body []byte) (json.RawMessage, error) {
	res, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: the answer broke off: %w", method, path, err)
	}
	return raw, nil
}

// into decodes an answer beside its raw text.
func into[T any](raw json.RawMessage, err error) (T, json.RawMessage, error) {
	var v T
	if err != nil {
		return v, nil, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, raw, fmt.Errorf("the node's answer cannot be read: %w", err)
	}
	return v, raw, nil
}
