package pgproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// maxFrame bounds a protocol message; larger ones are no Postgres.
const maxFrame = 256 << 20

var errCut = errors.New("pgproxy: cut")

// session is one connection of the program and its twin to the server.
type session struct {
	proxy          *Proxy
	client, server net.Conn

	prepared map[string]string // statement name to text; forward's own

	mu     sync.Mutex
	rounds []string // queries of the rounds whose end the server has not told
}

// forward reads what the program sends.
func (s *session) forward() error {
	in := bufio.NewReader(s.client)
	first, err := readBody(in, nil)
	if err != nil {
		return err
	}
	if _, err := s.server.Write(first); err != nil {
		return err
	}
	running := "" // the query bound since the last round ended
	for {
		frame, err := readFrame(in)
		if err != nil {
			return err
		}
		body := frame[5:]
		switch frame[0] {
		case 'P':
			name, rest := cstring(body)
			text, _ := cstring(rest)
			s.prepared[name] = text
		case 'B':
			_, rest := cstring(body)
			name, _ := cstring(rest)
			running = s.prepared[name]
			if s.proxy.spring(Before, running) {
				return errCut
			}
		case 'Q':
			text, _ := cstring(body)
			if s.proxy.spring(Before, text) {
				return errCut
			}
			s.proxy.Pause()
			s.begin(text)
		case 'S':
			s.proxy.Pause()
			s.begin(running)
			running = ""
		}
		if _, err := s.server.Write(frame); err != nil {
			return err
		}
	}
}

// backward reads what the server answers.
func (s *session) backward() error {
	in := bufio.NewReader(s.server)
	started := false // the server's first readiness ends the login, no query
	for {
		frame, err := readFrame(in)
		if err != nil {
			return err
		}
		if frame[0] == 'Z' {
			if started && s.proxy.spring(After, s.finish()) {
				return errCut
			}
			started = true
		}
		if _, err := s.client.Write(frame); err != nil {
			return err
		}
	}
}

func (s *session) begin(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds = append(s.rounds, query)
}

func (s *session) finish() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rounds) == 0 {
		return ""
	}
	query := s.rounds[0]
	s.rounds = s.rounds[1:]
	return query
}

// readFrame reads a message: a type, a length that counts itself, a body.
func readFrame(in *bufio.Reader) ([]byte, error) {
	kind, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	return readBody(in, []byte{kind})
}

// readBody reads what has a length but no type, which the first message is.
func readBody(in *bufio.Reader, head []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(size[:]))
	if n < 4 || n > maxFrame {
		return nil, fmt.Errorf("pgproxy: a message of %d bytes", n)
	}
	frame := append(append(head, size[:]...), make([]byte, n-4)...)
	_, err := io.ReadFull(in, frame[len(head)+4:])
	return frame, err
}

func cstring(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}
