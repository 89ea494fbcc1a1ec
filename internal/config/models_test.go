package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/config"
)

func TestModelWindows(t *testing.T) {
	t.Parallel()
	c := config.Config{ModelWindowList: []string{"claude-*=200000:16000", "gpt-5=400000"}}
	want := []config.ModelWindow{{Pattern: "claude-*", Tokens: 200000, Reserve: 16000}, {Pattern: "gpt-5", Tokens: 400000}}
	if diff := cmp.Diff(want, c.ModelWindows()); diff != "" {
		t.Error(diff)
	}
}
