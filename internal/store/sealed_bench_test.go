package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

// BenchmarkEncryption measures the append of a message and the read of the 200
// messages of a window with and without encryption, on one server.
//
//	go test ./internal/store -run xxx -bench Encryption -count 6 -benchtime 1000x
func BenchmarkEncryption(b *testing.B) {
	url := testdb.New(b)
	body := `{"role":"user","content":"` + strings.Repeat("lorem ipsum ", 80) + `"}`
	const sessions = 256 // opened before anything is measured
	nodes := map[string]*store.Store{}
	for name, cfg := range map[string]store.Config{"off": {URL: url}, "on": storetest.Encrypt(b, store.Config{URL: url})} {
		s, err := store.Open(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(s.Close)
		nodes[name] = s
		for range 200 {
			mustAppend(b, s, item("read "+name, msg(body, 200)))
		}
		for i := range sessions {
			mustAppend(b, s, item(fmt.Sprintf("%s-%d", name, i), msg(body, 200)))
		}
	}
	var n atomic.Int64
	for _, writers := range []int{1, 64} {
		for _, name := range []string{"off", "on"} {
			b.Run(fmt.Sprintf("append/writers=%d/%s", writers, name), func(b *testing.B) {
				b.SetParallelism(writers)
				b.RunParallel(func(pb *testing.PB) {
					session := fmt.Sprintf("%s-%d", name, n.Add(1)%sessions)
					for pb.Next() {
						if _, err := nodes[name].Append(b.Context(), item(session, msg(body, 200, fmt.Sprint(n.Add(1))))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
	for _, name := range []string{"off", "on"} {
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				mustAppend(b, nodes[name], item(fmt.Sprintf("new-%s-%d", name, n.Add(1)), msg(body, 200)))
			}
		})
		row, err := nodes[name].Session(b.Context(), tenant, "read "+name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("read/"+name, func(b *testing.B) {
			for b.Loop() {
				if v, err := nodes[name].View(b.Context(), tenant, "read "+name, row.SID, 0, 200); err != nil || len(v.Bodies) != 200 {
					b.Fatal(len(v.Bodies), err)
				}
			}
		})
	}
}
