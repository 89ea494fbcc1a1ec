package bus

import (
	"testing"

	"github.com/google/uuid"
)

func TestPartitionIsFixed(t *testing.T) {
	t.Parallel()
	// Nodes of different versions must agree.
	if got := Partition(sid); got != 3 {
		t.Errorf("Partition(%s) = %d", sid, got)
	}
	seen := map[int]bool{}
	for range 1000 {
		p := Partition(uuid.NewString())
		if p < 0 || p >= Partitions {
			t.Fatalf("partition %d out of range", p)
		}
		seen[p] = true
	}
	if len(seen) != Partitions {
		t.Errorf("only %d partitions used", len(seen))
	}
}

func TestDedupID(t *testing.T) {
	t.Parallel()
	ids := map[string]Job{}
	for _, j := range []Job{
		{SID: sid, Epoch: 1, Attempt: 11},
		{SID: sid, Epoch: 11, Attempt: 1},
		{SID: sid, Epoch: 1, Attempt: 1},
		{SID: uuid.NewString(), Epoch: 1, Attempt: 1},
	} {
		if other, ok := ids[j.dedupID()]; ok {
			t.Errorf("%+v and %+v share an id", j, other)
		}
		ids[j.dedupID()] = j
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := newBackoff(100, 1000)
	for n, most := range map[int]int64{0: 100, 1: 100, 2: 200, 4: 800, 5: 1000, 1 << 30: 1000} {
		for range 50 {
			if d := int64(b.Delay(n)); d > most || d < most/2 {
				t.Errorf("Delay(%d) = %d, want %d..%d", n, d, most/2, most)
			}
		}
	}
	if (Backoff{}).Delay(3) != 0 {
		t.Error("zero backoff delays")
	}
}
