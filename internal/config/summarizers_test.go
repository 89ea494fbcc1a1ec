package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestSummarizers(t *testing.T) {
	t.Parallel()
	in := input(t, "", nil,
		"--summarizers=small=openai:gpt-x-mini, local=openai:qwen3:8b@http://127.0.0.1:11434/v1, claude=anthropic:claude-x, mine=host, rule=extractive",
		"--summarizer-prices=small=0.15/0.6", "--summarizer-limits=small=5", "--summarizer-tenants=acme=claude+local")
	c, settings, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []Summarizer{
		{Name: "small", Kind: "openai", Model: "gpt-x-mini", InputPrice: 0.15, OutputPrice: 0.6, DailyLimit: 5},
		{Name: "local", Kind: "openai", Model: "qwen3:8b", URL: "http://127.0.0.1:11434/v1"},
		{Name: "claude", Kind: "anthropic", Model: "claude-x"},
		{Name: "mine", Kind: "host"},
		{Name: "rule", Kind: "extractive"},
	}
	if diff := cmp.Diff(want, c.Summarizers()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"acme": {"claude", "local"}}, c.TenantSummarizers()); diff != "" {
		t.Error(diff)
	}
	if got := (Summarizer{Name: "my-model"}).KeyEnv(); got != "ENGINED_SUMMARIZER_MY_MODEL_KEY" {
		t.Error(got)
	}
	for _, s := range settings {
		if s.Name == "summarizers" && s.Shown() == "" {
			t.Error("summarizers are not shown")
		}
	}
}

func TestSummarizersThatAreRefused(t *testing.T) {
	t.Parallel()
	for args, why := range map[string]string{
		"--summarizers=gpt":                               "NAME=KIND:MODEL@URL",
		"--summarizers=A=openai:m":                        "small letters",
		"--summarizers=a=openai":                          "no model",
		"--summarizers=a=gemini:m":                        "not one of",
		"--summarizers=a=openai:m@http://u:p@h/v1":        "without a user",
		"--summarizers=a=openai:m@http://h/v1?key=secret": "without a user",
		"--summarizers=a=host:m@http://h":                 "no URL",
		"--summarizers=a=extractive:m":                    "neither",
		"--summarizers=a=host,a=extractive":               "twice",
		"--summarizer-prices=a=1/2":                       "no summarizer is named a",
		"--summarizer-prices=a=1":                         "INPUT/OUTPUT",
		"--summarizer-prices=a=-1/2":                      "INPUT/OUTPUT",
		"--summarizer-limits=a=0":                         "DOLLARS",
		"--summarizers=a=host --summarizer-limits=a=3":    "no price",
		"--summarizers=a=host --summarizer-tenants=t=a+b": "no summarizer is named so",
		"--summarizer-tenants=t":                          "TENANT=NAME+NAME",
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		AddFlags(fs, everything, nil)
		err := fs.Parse(strings.Fields(args))
		if err == nil {
			_, _, err = Load(Input{Flags: fs})
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", args, err, why)
		}
	}
}
