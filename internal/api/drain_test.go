package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRefusalReachesWhoSendsFirst: a client that sends its whole body before it
// reads must find the answer, and no broken pipe.
func TestRefusalReachesWhoSendsFirst(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	s := httptest.NewUnstartedServer(a)
	s.Config = a.Server()
	s.Start()
	defer s.Close()
	const size = 9 << 20
	for _, head := range []string{
		fmt.Sprintf("Content-Length: %d\r\n", size), "Transfer-Encoding: chunked\r\n",
		fmt.Sprintf("Content-Type: image/png\r\nContent-Length: %d\r\n", size),
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST %s/ingest HTTP/1.1\r\nHost: x\r\n%s\r\n", known, head); err != nil {
			t.Fatal(err)
		}
		body := io.Reader(strings.NewReader(`{"message":{"x":"` + strings.Repeat("x", size-20) + `"}}`))
		want := 413
		if strings.Contains(head, "image") {
			want = 415
		}
		chunked := strings.Contains(head, "chunked")
		if chunked {
			_, err = fmt.Fprintf(conn, "%x\r\n", size)
		}
		if err == nil {
			_, err = io.Copy(conn, body)
		}
		if err == nil && chunked {
			_, err = io.WriteString(conn, "\r\n0\r\n\r\n")
		}
		if err != nil {
			t.Fatalf("%q: sending: %v", head, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: reading: %v", head, err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%q: %d, want %d", head, res.StatusCode, want)
		}
	}
}
