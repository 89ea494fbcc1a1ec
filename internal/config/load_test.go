package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

const everything = ^Scope(0)

func input(t *testing.T, yaml string, env map[string]string, args ...string) Input {
	t.Helper()
	in := Input{LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	if yaml != "" {
		in.File = filepath.Join(t.TempDir(), "engined.yaml")
		if err := os.WriteFile(in.File, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in.Flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(in.Flags, everything, nil)
	if err := in.Flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTheFlagWinsThenTheEnvironmentThenTheFile(t *testing.T) {
	t.Parallel()
	const file = "listen: 127.0.0.1:1"
	env := map[string]string{"ENGINED_LISTEN": "127.0.0.1:2"}
	flag := "--listen=127.0.0.1:3"
	for name, tc := range map[string]struct {
		in   Input
		want string
		from string
	}{
		"default":     {input(t, "", nil), "127.0.0.1:7420", "default"},
		"file":        {input(t, file, nil), "127.0.0.1:1", "engined.yaml"},
		"environment": {input(t, file, env), "127.0.0.1:2", "ENGINED_LISTEN"},
		"flag":        {input(t, file, env, flag), "127.0.0.1:3", "--listen"},
		"empty variable": {
			input(t, file, map[string]string{"ENGINED_LISTEN": ""}), "127.0.0.1:1", "engined.yaml",
		},
		"flag equal to the default": {input(t, file, env, "--listen=127.0.0.1:7420"), "127.0.0.1:7420", "--listen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, settings, err := Load(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if c.Listen != tc.want {
				t.Errorf("listen = %s, want %s", c.Listen, tc.want)
			}
			if s := settings[0]; s.Name != "listen" || !strings.HasSuffix(string(s.Source), tc.from) {
				t.Errorf("%s comes from %s, want %s", s.Name, s.Source, tc.from)
			}
		})
	}
}

func TestEveryOptionCanBeSetByEachOfTheFour(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			want := sample(o)
			for from, in := range map[string]Input{
				"file":        input(t, o.Name+": '"+want+"'", nil),
				"environment": input(t, "", map[string]string{o.Env(): want}),
				"flag":        input(t, "", nil, "--"+o.Name+"="+want),
			} {
				_, settings, err := Load(in)
				if err != nil && !strings.Contains(err.Error(), "one needs the other") && !strings.Contains(err.Error(), "no summarizer is named") {
					t.Fatalf("%s: %v", from, err)
				}
				for _, s := range settings {
					if s.Name == o.Name && (s.Value != want || s.Source == "default") {
						t.Errorf("%s: value %q from %s, want %q", from, s.Value, s.Source, want)
					}
				}
			}
		})
	}
}

// sample is a value of the option's type that is not its default.
func sample(o Option) string {
	var c Config
	if s, ok := map[string]string{
		"summarizers": "a=openai:m@http://127.0.0.1:1/v1,b=extractive", "summarizer-tenants": "t=a+b",
		"summarizer-prices": "a=1/2", "summarizer-limits": "a=3",
	}[o.Name]; ok {
		return s
	}
	switch kind := o.bind(&c).Type(); kind {
	case "bool":
		return "true"
	case "int":
		if o.Name == "max-nesting" {
			return "64"
		}
		return "5"
	case "rate":
		return "2.5"
	case "share":
		return map[string]string{"compaction-threshold": "0.9", "compaction-target": "0.6", "compaction-tail": "0.2"}[o.Name]
	case "period":
		return "90d"
	case "duration":
		return "7s"
	case "size":
		return "9MiB"
	case "list":
		return "a=b,c=d"
	case "ids and urls":
		return "a=http://example.com:9,b=https://example.com/x"
	case "durations":
		return "assemble=1s,ingest=2s"
	case "models":
		return "a*=1000:10,b=20"
	case "url":
		return "http://example.com:9"
	case "host:port":
		return "127.0.0.1:99"
	case "dir", "file", "token":
		return "/some/thing"
	default:
		for word := range strings.SplitSeq(kind, "|") {
			if word != o.Default {
				return word
			}
		}
		return ""
	}
}

func TestWhatIsWrongIsSaidWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml string
		env  map[string]string
		want string
	}{
		"engine's place":    {"", map[string]string{"ENGINED_ENGINES": "acme=ftp://u:hunter2@x"}, `the entry of engine "acme" is not ID=URL`},
		"engine's member":   {"", map[string]string{"ENGINED_ENGINES": "acme=http://x;token=hunter2"}, `the entry of engine "acme": "token" is not owner, token-env or timeout`},
		"engine's timeout":  {"", map[string]string{"ENGINED_ENGINES": "acme=http://x;timeout=never"}, `timeout is not a duration such as 5s`},
		"engine's owner":    {"", map[string]string{"ENGINED_ENGINES": "acme=http://x;owner=core"}, `the owner core is engined's own`},
		"operation's time":  {"", map[string]string{"ENGINED_ENGINE_TIMEOUTS": "assemble=soon"}, `"assemble=soon" is not OPERATION=DURATION`},
		"unknown key":       {"a: 1", nil, `line 1: unknown key "a"`},
		"misspelt key":      {"\nlistn: x", nil, `line 2: unknown key "listn"; did you mean "listen"?`},
		"underscores":       {"log_level: x", nil, `did you mean "log-level"?`},
		"twice":             {"listen: a:1\nlisten: b:1", nil, `listen`},
		"not a mapping":     {"- a", nil, "not a mapping"},
		"nested":            {"listen: {host: a}", nil, "line 1: listen: neither a value nor a list"},
		"word in the file":  {"log-level: loud", nil, `line 1: log-level: "loud" is not one of debug, info, warn, error`},
		"number":            {"", map[string]string{"ENGINED_NATS_REPLICAS": "many"}, `ENGINED_NATS_REPLICAS: "many" is not a whole number`},
		"range":             {"", map[string]string{"ENGINED_NATS_REPLICAS": "9"}, "9 is not within 1 and 5"},
		"duration":          {"request-timeout: 30", nil, `"30" is not a duration such as 30s`},
		"size":              {"max-message-bytes: huge", nil, `"huge" is not a size`},
		"share":             {"compaction-target: 1.5", nil, "1.5 is not a share"},
		"tail":              {"compaction-tail: 0.6", nil, "leaves no room for summaries"},
		"listen":            {"listen: here", nil, `"here" is not host:port`},
		"url":               {"url: localhost:7420", nil, "not an http or https URL"},
		"hook's url":        {"hook-url: ftp://hunter2@x", nil, "hook-url: not an http or https URL"},
		"half a key pair":   {"nats-cert: a.pem", nil, "one needs the other"},
		"key":               {"keys: [token]", nil, "an entry is not TOKEN=TENANT"},
		"one key, two uses": {"keys: [a=x, a=y]", nil, "one token stands there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(input(t, tc.yaml, tc.env))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestAnEmptyFileSaysNothing(t *testing.T) {
	t.Parallel()
	for _, yaml := range []string{"# nothing\n", "---\n", "listen:\n", "{}"} {
		c, _, err := Load(input(t, yaml, nil))
		if err != nil || c.Listen != "127.0.0.1:7420" {
			t.Errorf("%q: listen %q, error %v", yaml, c.Listen, err)
		}
	}
}

func TestAliasCountsAfterTheOwnVariable(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": "postgres://alias"}
	c, _, _ := Load(input(t, "database-url: postgres://file", env))
	if c.DatabaseURL != "postgres://alias" {
		t.Errorf("alias: %s", c.DatabaseURL)
	}
	env["ENGINED_DATABASE_URL"] = "postgres://own"
	c, _, _ = Load(input(t, "", env))
	if c.DatabaseURL != "postgres://own" {
		t.Errorf("own variable: %s", c.DatabaseURL)
	}
}

func TestValuesAreRead(t *testing.T) {
	t.Parallel()
	c, _, err := Load(input(t, "keys: [t1=acme, t2=umbrella=gateway+analyst]\nmax-batch-bytes: 1GiB\ndefault-token-budget: 200_000\nshutdown-grace: 2m", nil, "--worker"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]StaticKey{{"t1", "acme", []string{"admin"}}, {"t2", "umbrella", []string{"gateway", "analyst"}}}, c.StaticKeys()); diff != "" {
		t.Error(diff)
	}
	if c.MaxBatchBytes != 1<<30 || c.DefaultTokenBudget != 200_000 || c.ShutdownGrace != 2*time.Minute || !c.Worker {
		t.Errorf("%+v", c)
	}
}

func TestRemoteEnginesAreRead(t *testing.T) {
	t.Parallel()
	c, _, err := Load(input(t, "engines: [a=http://h:1/x, b=https://h;owner=team;token-env=TOKEN;timeout=3s]", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []RemoteEngine{{ID: "a", URL: "http://h:1/x"}, {ID: "b", URL: "https://h", Owner: "team", TokenEnv: "TOKEN", Timeout: 3 * time.Second}}
	if diff := cmp.Diff(want, c.RemoteEngines()); diff != "" {
		t.Error(diff)
	}
	env := map[string]string{"TOKEN": "hush"}
	lookup := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	if token, err := want[1].Token(lookup); err != nil || token != "hush" {
		t.Errorf("%q, %v", token, err)
	}
	delete(env, "TOKEN")
	if _, err := want[1].Token(lookup); err == nil || !strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("without the variable: %v", err)
	}
	if token, err := want[0].Token(lookup); err != nil || token != "" {
		t.Errorf("without a token: %q, %v", token, err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	_, settings, err := Load(input(t, "keys: [hush=acme]\nkey: hush\ndatabase-url: postgres://u:hush@db/x\nnats-url: nats://hush@h:4222", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if s.Name != "nats-url" && strings.Contains(s.Shown(), "hush") {
			t.Errorf("%s shows %q", s.Name, s.Shown())
		}
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{
		"127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false, ":1": true, "0.0.0.0:1": true, "10.0.0.1:1": true, "host:1": true,
	} {
		if got := (Config{Listen: listen}).Exposed(); got != want {
			t.Errorf("%s: exposed %v", listen, got)
		}
	}
}
