package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

// BenchmarkRowSecurity measures the append and the read of a window's messages
// with and without policies, on a server that does not wait for its disk: what
// is left is what they cost.
//
//	go test ./internal/store -run xxx -bench RowSecurity -count 6 -benchtime 3s
func BenchmarkRowSecurity(b *testing.B) {
	for _, secured := range []bool{false, true} {
		s, err := storetest.Open(b, b.Context(), store.Config{URL: testdb.New(b), RowSecurity: secured})
		if err != nil {
			b.Fatal(err)
		}
		body := `{"role":"user","content":"` + strings.Repeat("x", 800) + `"}`
		name := fmt.Sprintf("secured=%v", secured)
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("append/writers=%d/%s", writers, name), func(b *testing.B) {
				var n atomic.Int64
				b.SetParallelism(writers)
				b.RunParallel(func(pb *testing.PB) {
					session := fmt.Sprintf("%s-%d-%d", b.Name(), b.N, n.Add(1))
					for i := 0; pb.Next(); i++ {
						if _, err := s.Append(b.Context(), item(session, msg(body, 200, fmt.Sprint(i)))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
		for range 200 {
			mustAppend(b, s, item("read", msg(body, 200)))
		}
		b.Run("view/"+name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.View(b.Context(), tenant, "read", uuid.Nil, 0, 200); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
		s.Close()
	}
}
