package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestChaos runs the plan of a seed.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a cluster of processes under faults")
	}
	all := faults
	if *only != "" {
		all = nil
		for _, f := range faults {
			if strings.Contains(f.name, *only) {
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("there is no fault %q", *only)
	}
	t.Logf("seed %d", *seed)
	start := time.Now()
	r := newRun(t)
	t.Logf("everything runs after %.1f s", time.Since(start).Seconds())
	for i, s := range plan(*seed, *cycles, all) {
		began, acked, again := time.Now(), r.acked.Load(), r.again.Load()
		r.cycle(i, s, all)
		var names []string
		for _, f := range s.faults {
			names = append(names, all[f].name)
		}
		join := ", then "
		if s.together {
			join = " + "
		}
		t.Logf("cycle %d/%d: %s: %d writes, %d sent again, %.1f s", i+1, *cycles, strings.Join(names, join), r.acked.Load()-acked, r.again.Load()-again, time.Since(began).Seconds())
		if found := r.found(); len(found) > 0 {
			t.Errorf("cycle %d of seed %d:\n  %s", i+1, *seed, short(found))
		}
		if t.Failed() {
			break
		}
	}
	if !t.Failed() {
		r.end()
		if found := r.found(); len(found) > 0 {
			t.Errorf("at the end of seed %d:\n  %s", *seed, short(found))
		}
	}
	r.report(all)
	if *table && !t.Failed() && *only == "" {
		r.write(all)
	}
}
