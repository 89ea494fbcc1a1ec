package model

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// A step is some HTTP calls and a transaction.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("12")
	}
	os.Exit(m.Run())
}

// nodes starts two nodes on one database that share nothing in memory.
func nodes(t *testing.T) []*httptest.Server {
	t.Helper()
	db := testdb.New(t)
	var out []*httptest.Server
	for range 2 {
		s, err := storetest.Open(t, t.Context(), store.Config{URL: db})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		e := engine.NewLossless(engine.Config{Log: s})
		t.Cleanup(func() { _ = e.Dispose(context.Background()) })
		h, err := api.New(api.Config{Engine: e, Steps: e, Branches: e, Log: s, Lives: s, Auth: api.OpenAuth("t")})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		out = append(out, server)
	}
	return out
}

// answer is what came of a call.
type answer struct {
	status int
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %.400s", a.status, a.body) }

func (a answer) slug() string {
	var p struct{ Type string }
	if json.Unmarshal(a.body, &p) != nil {
		return ""
	}
	return p.Type[strings.LastIndexByte(p.Type, '/')+1:]
}

func call(t *testing.T, node *httptest.Server, method, key, rest, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, node.URL+"/v1/sessions/"+url.PathEscape(key)+rest, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := node.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, raw}
}
