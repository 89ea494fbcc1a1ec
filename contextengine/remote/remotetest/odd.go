package remotetest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// odd are the behaviours that take time or room.
func (s *Server) odd(b Behaviour, w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	switch b {
	case Hang:
		s.wait(r)
		panic(http.ErrAbortHandler)
	case Late:
		s.wait(r)
		_, _ = w.Write([]byte(Fine))
	case HangInBody:
		_, _ = w.Write([]byte(Fine[:40]))
		_ = http.NewResponseController(w).Flush()
		s.wait(r)
		panic(http.ErrAbortHandler)
	case SlowDrip:
		s.drip(w, r)
	case Huge:
		h.Set("Content-Length", strconv.Itoa(HugeBytes))
		const begin = `{"reason":"`
		flood(w, begin, "x", HugeBytes-len(begin))
	case HugeChunked:
		flood(w, `{"reason":"`, "x", HugeBytes)
	case HugeError:
		h.Set("Content-Type", problemType)
		w.WriteHeader(http.StatusInternalServerError)
		flood(w, `{"detail":"`, "x", HugeBytes)
	case ManyItems:
		flood(w, `{"ingestedCount":0,"seqs":[{}`, ",{}", 15_000_000)
		flood(w, `],"messages":[{}`, ",{}", 15_000_000)
		_, _ = w.Write([]byte(`],"estimatedTokens":1}`))
	case HugeHeader:
		for i := range 1000 {
			h.Set("X-"+strconv.Itoa(i), strings.Repeat("h", 8000))
		}
		_, _ = w.Write([]byte(Fine))
	case Compressed:
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte(Fine))
	case Redirect:
		http.Redirect(w, r, s.URL+r.URL.EscapedPath(), http.StatusTemporaryRedirect) //nolint:gosec // to itself
	case EarlyHints:
		h.Set("Link", "</"+strings.Repeat("l", 4000)+">")
		for range 100_000 {
			if r.Context().Err() != nil {
				break
			}
			w.WriteHeader(http.StatusEarlyHints)
		}
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(http.StatusTeapot)
	}
}

// drip sends one byte at a time for as long as anyone reads.
func (s *Server) drip(w http.ResponseWriter, r *http.Request) {
	const every = 5 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	control := http.NewResponseController(w)
	next := []byte(`{"reason":"`)
	for {
		if _, err := w.Write(next[:1]); err != nil || control.Flush() != nil {
			return
		}
		if next = next[1:]; len(next) == 0 {
			next = []byte("drip ")
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// flood writes begin, then n bytes of unit over and over.
func flood(w http.ResponseWriter, begin, unit string, n int) {
	_, _ = w.Write([]byte(begin))
	block := bytes.Repeat([]byte(unit), 30_000)
	for left := n; left > 0; left -= len(block) {
		if _, err := w.Write(block[:min(left, len(block))]); err != nil {
			return
		}
	}
}
