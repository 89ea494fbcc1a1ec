package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
)

// idle is an engine that costs nothing.
type idle struct {
	*fake
	window contextengine.AssembleResult
}

func (*idle) Ingest(context.Context, contextengine.IngestParams) (contextengine.IngestResult, error) {
	return contextengine.IngestResult{Ingested: true, Seq: 1234567, Head: 1234567, Epoch: 3}, nil
}

func (i *idle) Assemble(context.Context, contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	return i.window, nil
}

// nowhere is a response that is thrown away.
type nowhere struct {
	header http.Header
	status int
}

// SetReadDeadline and SetWriteDeadline exist as on a real connection.
func (n *nowhere) SetReadDeadline(time.Time) error  { return nil }
func (n *nowhere) SetWriteDeadline(time.Time) error { return nil }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(status int)      { n.status = status }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }

// sinkHeader keeps an allocation from being optimised away.
var sinkHeader http.Header

func sized(n int) string {
	return `{"message":{"role":"user","content":"` + strings.Repeat("a word, ", n/8) + `"},"idempotencyKey":"0123456789abcdef"}`
}

// BenchmarkIngest is what the API costs on top of the engine, and the same
// request through huma's own registration.
func BenchmarkIngest(b *testing.B) {
	mux := http.NewServeMux()
	h := humago.New(mux, huma.DefaultConfig("bench", "1"))
	type input struct {
		Key  string `path:"key" maxLength:"512"`
		Body struct {
			Message        json.RawMessage `json:"message"`
			IdempotencyKey string          `json:"idempotencyKey,omitempty"`
		}
	}
	type output struct{ Body contextengine.IngestResult }
	huma.Post(h, "/v1/sessions/{key}/ingest", func(ctx context.Context, in *input) (*output, error) {
		res, err := (&idle{}).Ingest(ctx, contextengine.IngestParams{Message: in.Body.Message})
		return &output{res}, err
	})
	engine := &idle{fake: newFake()}
	own := newAPI(b, engine.fake, func(c *api.Config) {
		c.Engine, c.Auth = engine, keyed(map[string]string{"0123456789abcdef0123456789abcdef": "default"})
	})
	for _, size := range []int{200, 2_000, 50_000} {
		for name, handler := range map[string]http.Handler{"own": own, "huma": mux} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				body := sized(size)
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					r := httptest.NewRequest(http.MethodPost, "/v1/sessions/agent%3Amain%3Amain/ingest", strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Authorization", "Bearer 0123456789abcdef0123456789abcdef")
					w := &nowhere{header: http.Header{}}
					handler.ServeHTTP(w, r)
					if w.status > 299 {
						b.Fatal(w.status)
					}
				}
			})
		}
	}
	b.Run("request", func(b *testing.B) { // what the two above pay for the request itself
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "/v1/sessions/agent%3Amain%3Amain/ingest", strings.NewReader(sized(200)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer 0123456789abcdef0123456789abcdef")
			sinkHeader = http.Header{}
		}
	})
}

// BenchmarkServer compares with a handler that only reads and answers, over real
// connections.
func BenchmarkServer(b *testing.B) {
	engine := &idle{fake: newFake()}
	own := newAPI(b, engine.fake, func(c *api.Config) { c.Engine = engine })
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ingested":true,"seq":1234567,"head":1234567,"epoch":3,"duplicate":false}`)
	})
	for name, start := range map[string]func() *http.Server{"own": own.Server, "bare": func() *http.Server { return &http.Server{Handler: bare} }} {
		b.Run(name, func(b *testing.B) {
			server := start()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = server.Serve(l) }()
			defer server.Close()
			url := "http://" + l.Addr().String() + "/v1/sessions/agent%3Amain%3Amain/ingest"
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			body := sized(1000)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					res, err := client.Post(url, "application/json", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			})
		})
	}
}

func BenchmarkAssemble(b *testing.B) {
	engine := &idle{fake: newFake()}
	for range 200 {
		engine.window.Messages = append(engine.window.Messages, json.RawMessage(`{"role":"user","content":"`+strings.Repeat("a word, ", 250)+`"}`))
	}
	own := newAPI(b, engine.fake, func(c *api.Config) { c.Engine = engine })
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/sessions/s/assemble", strings.NewReader(`{"tokenBudget":100000}`))
		own.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}
}
