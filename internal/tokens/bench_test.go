package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/engined/engined/internal/tokens"
)

func BenchmarkText(b *testing.B) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		s := string(body)
		b.Run(filepath.Base(f), func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				tokens.Text(s)
			}
		})
	}
}
