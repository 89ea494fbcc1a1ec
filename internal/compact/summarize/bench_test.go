package summarize

import "testing"

func BenchmarkExtractive(b *testing.B) {
	req := requestOf(readLines(b, "pi"), 1200)
	bytes := 0
	for _, l := range req.Lines {
		bytes += len(l.Text)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Extractive{}).Summarize(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
