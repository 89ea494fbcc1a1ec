package config_test

import (
	"testing"

	"github.com/engined/engined/internal/config"
)

// TestEverySettingHasOneTopic, or help would leave it out or show it twice.
func TestEverySettingHasOneTopic(t *testing.T) {
	t.Parallel()
	times := map[string]int{}
	for _, topic := range config.Topics() {
		for _, name := range topic.Names {
			times[name]++
		}
	}
	for _, o := range config.Options() {
		if times[o.Name] != 1 {
			t.Errorf("%s is under %d topics", o.Name, times[o.Name])
		}
		delete(times, o.Name)
	}
	for name := range times {
		t.Errorf("%s is no setting", name)
	}
}
