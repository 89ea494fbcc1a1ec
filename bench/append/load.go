package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// measured is what one measurement of one side found. A side is warmed up first:
// calls are all that were acknowledged, counted those of the time measured.
type measured struct {
	calls, counted int64
	took           time.Duration
	lat            []time.Duration // a sample of the counted
	used           cpuTimes        // by the counted
}

// warmUp is how long a side runs before it is measured. A new connection of
// pgbench has every statement of the function to plan at its first call; the
// node keeps its connections, as a service does.
const warmUp = 3 * time.Second

// caller is one keep-alive connection with a request of its own, of which only
// the digits of session and idempotency key change: the generator should cost
// as little as it can, for it runs on the node's processors.
type caller struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	session []byte // the digits, within request
	key     []byte
	rnd     *rand.Rand
	calls   int64
	lat     []time.Duration // of the calls that count
}

const keyDigits = 16

func newCaller(ctx context.Context, addr string, sessions, size int, seed uint64) (*caller, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	const mark = "KKKKKKKKKKKKKKKK"
	body := fmt.Sprintf(`{"message":%s,"idempotencyKey":%q}`, payload(size), "call-"+mark)
	path := url.PathEscape(sessionKey(sideHTTP, sessions, 0))
	request := fmt.Appendf(nil, "POST /v1/sessions/%s/ingest HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, addr, len(body), body)
	at := bytes.Index(request, []byte("/ingest")) - 4
	key := bytes.LastIndex(request, []byte(mark))
	return &caller{
		conn: conn, in: bufio.NewReaderSize(conn, 4096), request: request,
		session: request[at : at+4], key: request[key : key+keyDigits],
		rnd: rand.New(rand.NewPCG(seed, 7)),
	}, nil
}

// call sends one request and reads its answer.
func (c *caller) call(sessions int, number int64) error {
	digits(c.session, int64(c.rnd.IntN(sessions)))
	digits(c.key, number)
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200"))
	said := string(bytes.TrimSpace(status[:min(len(status), 40*boolInt(!ok))]))
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); string(name) == "Content-Length" {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without a length: %s", said)
	}
	if !ok {
		problem, _ := io.ReadAll(io.LimitReader(c.in, int64(length)))
		return fmt.Errorf("%s: %s", said, problem)
	}
	_, err = c.in.Discard(length)
	return err
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// digits writes n right-aligned over all of b.
func digits(b []byte, n int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// driveHTTP keeps every connection busy with one call at a time. Calls that
// have begun are waited for, so that every one has a known outcome.
func (b *bench) driveHTTP(ctx context.Context, sessions, conns int, length time.Duration) (measured, error) {
	callers := make([]*caller, conns)
	for i := range callers {
		c, err := newCaller(ctx, b.node.addr, sessions, b.bytes, uint64(b.calls)+uint64(i))
		if err != nil {
			return measured{}, err
		}
		defer c.conn.Close()
		callers[i] = c
	}
	var wg sync.WaitGroup
	fault := make(chan error, conns)
	from := time.Now().Add(warmUp)
	until := from.Add(length)
	for i, c := range callers {
		// Each connection has a block of numbers, so that they share nothing.
		next := b.calls + int64(i)<<24
		wg.Go(func() {
			for now := time.Now(); now.Before(until) && ctx.Err() == nil; {
				next++
				if err := c.call(sessions, next); err != nil {
					fault <- err
					return
				}
				end := time.Now()
				c.calls++
				if end.After(from) && !end.After(until) {
					c.lat = append(c.lat, end.Sub(now))
				}
				now = end
			}
		})
	}
	cpu := b.cpuAt(from)
	wg.Wait()
	m := measured{took: length, used: b.cpu().since(<-cpu)}
	b.calls += int64(conns) << 24
	for _, c := range callers {
		m.calls += c.calls
		m.counted += int64(len(c.lat))
		m.lat = append(m.lat, c.lat...)
	}
	select {
	case err := <-fault:
		return m, fmt.Errorf("ingest: %w", err)
	default:
		return m, ctx.Err()
	}
}
