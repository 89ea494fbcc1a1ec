package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/engined/engined/internal/tokens"
)

// BenchmarkUnbroken is the dearest a text can be: a megabyte without a break.
func BenchmarkUnbroken(b *testing.B) {
	random := func(alphabet string) string {
		r := rand.New(rand.NewPCG(1, 2))
		out := make([]byte, 1<<20)
		for i := range out {
			out[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(out)
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for _, c := range []struct{ name, text string }{
		{"words", strings.Repeat("what about the release and its notes? ", 1<<20/38)},
		{"one letter", strings.Repeat("y", 1<<20)},
		{"letters", random(letters)},
		{"base64", random(letters + strings.ToUpper(letters) + "0123456789+/")},
		{"signs", random("-=_*#.{}()[];:\"<>/\\|")},
		{"chinese", strings.Repeat("我们需要先检查日志文件然后再决定如何修复这个错误", 1<<20/72)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			n := 0
			for b.Loop() {
				n = tokens.Text(c.text)
			}
			b.ReportMetric(float64(n), "tokens")
		})
	}
}
