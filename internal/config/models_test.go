package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/config"
)

func TestModelWindows(t *testing.T) {
	t.Parallel()
	c := config.Config{ModelWindowList: []string{"claude-*=200000:16000", "gpt-5=400000", "a=1000:0:0.9:0.7", "b=::0.5", "c=1000::0.8"}}
	want := []config.ModelWindow{
		{Pattern: "claude-*", Tokens: 200000, Reserve: 16000},
		{Pattern: "gpt-5", Tokens: 400000},
		{Pattern: "a", Tokens: 1000, Threshold: 0.9, Soft: 0.7},
		{Pattern: "b", Threshold: 0.5},
		{Pattern: "c", Tokens: 1000, Threshold: 0.8},
	}
	if diff := cmp.Diff(want, c.ModelWindows()); diff != "" {
		t.Error(diff)
	}
}

func TestBadModelWindows(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", "claude", "=1000", "a=", "a=0", "a=-5", "a=x", "a=1000:1000", "a=1000:x", "a=:10:0.5", "a=1000:0:", "a=::",
		"a=1000:0:1.5", "a=1000:0:0.05", "a=1000:0:NaN", "a=1000:0:0.5:0.6", "a=1000:0::0.5", "a=1000:0:0.9:0.8:1", "[=1000",
	} {
		c := config.Config{ModelWindowList: []string{entry}}
		got := c.ModelWindows()
		if entry == "a=1000:0:" { // an empty threshold tells nothing
			if len(got) != 1 || got[0].Threshold != 0 {
				t.Errorf("%q: %+v", entry, got)
			}
			continue
		}
		if len(got) != 0 {
			t.Errorf("%q is taken: %+v", entry, got)
		}
	}
}
