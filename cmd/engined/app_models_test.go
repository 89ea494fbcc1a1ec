package main

import (
	"testing"

	"github.com/engined/engined/internal/config"
)

// TestAThresholdAloneIsASetting: whoever lowers or raises it need not know of target
// and tail.
func TestAThresholdAloneIsASetting(t *testing.T) {
	t.Parallel()
	for _, threshold := range []string{"0.1", "0.3", "0.59", "0.6", "0.61", "0.85", "1"} {
		env := map[string]string{"ENGINED_COMPACTION_THRESHOLD": threshold}
		cfg, _, err := config.Load(config.Input{LookupEnv: func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		}})
		if err != nil {
			t.Errorf("threshold %s: %v", threshold, err)
			continue
		}
		if err := checkPolicies(cfg); err != nil {
			t.Errorf("threshold %s: %v", threshold, err)
		}
	}
}
