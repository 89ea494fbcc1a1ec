package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	away := []string{"--url", "http://127.0.0.1:1"}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":             {[]string{"--help"}, exitOK, ""},
		"version":          {[]string{"version"}, exitOK, ""},
		"unknown command":  {[]string{"bogus"}, exitUsage, `unknown command "bogus"`},
		"unknown flag":     {[]string{"sessions", "--bogus"}, exitUsage, "unknown flag: --bogus"},
		"bad value":        {[]string{"dev", "--log-level", "loud"}, exitUsage, `"loud" is not one of debug`},
		"too few":          {[]string{"window"}, exitUsage, "KEY is missing"},
		"too many":         {[]string{"sessions", "x"}, exitUsage, "unknown command"},
		"bad URL":          {[]string{"sessions", "--url", "here"}, exitUsage, "not an http or https URL"},
		"half a command":   {[]string{"migrate", "bogus"}, exitUsage, "migrate up or migrate status"},
		"no database":      {[]string{"migrate", "up"}, exitUsage, "no database"},
		"nobody there":     {append([]string{"sessions"}, away...), exitFailure, "Hint: start a node"},
		"no such file":     {[]string{"config", "--config", "/nowhere/engined.yaml"}, exitUsage, "no such file"},
		"serve without db": {[]string{"serve", "--listen", "127.0.0.1:0"}, exitFailure, "no database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := engined(t, tc.args...)
			if got.code != tc.code || !strings.Contains(got.err, tc.want) {
				t.Errorf("exit code %d, want %d\nstderr: %s", got.code, tc.code, got.err)
			}
			if tc.code != exitOK && got.out != "" {
				t.Errorf("stdout: %s", got.out)
			}
		})
	}
}

func TestConfigTellsWhoSaidSo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "engined.yaml")
	writeFile(t, file, "log-level: debug\nkeys: [hush=acme]\n")
	got := engined(t, "config", "--config", file).ok(t)
	for _, want := range []string{"log-level", "debug", file, "(1 keys)"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it does not show %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "hush") {
		t.Errorf("it shows a key:\n%s", got.out)
	}
}

func TestTheDocumentedConfigurationIsPrinted(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := engined(t, "config", "--markdown").ok(t); got.out != string(want) {
		t.Error("docs/configuration.md is not what config --markdown prints")
	}
}

func TestEveryListingHasJSON(t *testing.T) {
	t.Parallel()
	root := (&cli{}).root()
	for _, name := range []string{"sessions", "show", "events", "tail", "window", "compact", "undo-compaction", "fork", "erase", "engines", "doctor", "health", "import", "config", "version"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil || cmd.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json (%v)", name, err)
		}
	}
}
