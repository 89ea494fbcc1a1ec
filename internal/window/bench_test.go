package window

import (
	"fmt"
	"testing"
)

func benchLog(entries int) *testLog {
	l := &testLog{}
	for i := 0; len(l.entries) < entries; i++ {
		l.user(40)
		for j := range 4 {
			id := fmt.Sprintf("call_%d_%d", i, j)
			l.call(60, id)
			l.result(900, id)
		}
		l.say(200)
	}
	return l
}

func BenchmarkBuild(b *testing.B) {
	for _, entries := range []int{100, 1000, 10000} {
		for _, share := range []int{1, 10} {
			b.Run(fmt.Sprintf("entries=%d/shown=1in%d", entries, share), func(b *testing.B) {
				l := benchLog(entries)
				in := l.within(int(l.offset)/share + 1000)
				b.ReportAllocs()
				for b.Loop() {
					Build(in)
				}
			})
		}
	}
}

func BenchmarkNeedMore(b *testing.B) {
	l := benchLog(1000)
	in := l.within(int(l.offset) / 2)
	in.Older = true
	b.ReportAllocs()
	for b.Loop() {
		NeedMore(in)
	}
}
