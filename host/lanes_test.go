package host

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBackgroundRunsOneMoreForAllThatWaited.
func TestBackgroundRunsOneMoreForAllThatWaited(t *testing.T) {
	t.Parallel()
	var b background
	b.start()
	begun, proceed, ran := make(chan struct{}), make(chan struct{}), make(chan int, 10)
	id := lane{"t", "k"}
	b.run(id, func(context.Context) {
		close(begun)
		<-proceed
		ran <- 1
	})
	<-begun
	for i := 2; i <= 4; i++ {
		b.run(id, func(context.Context) { ran <- i })
	}
	close(proceed)
	got := []int{<-ran, <-ran}
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.run(id, func(context.Context) { ran <- 5 }) // closed
	close(ran)
	for i := range ran {
		got = append(got, i)
	}
	if diff := cmp.Diff([]int{1, 4}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLanesAreForgotten(t *testing.T) {
	t.Parallel()
	var l lanes
	leave, err := l.enter(t.Context(), lane{key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.enter(ctx, lane{key: "a"}); !isAbort(err) {
		t.Errorf("a busy lane: %v", err)
	}
	leave()
	if len(l.open) != 0 {
		t.Errorf("%d lanes are kept", len(l.open))
	}
}
