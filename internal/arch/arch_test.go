package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/engined/engined"

// rule says that packages matching From reach nothing that matches May not.
// Patterns are import paths, within the module where they begin with a dot;
// they cover what lies below them.
type rule struct {
	name string
	// from are the packages the rule binds; except are those it lets off.
	from, except []string
	// not are the packages that may not be imported.
	not []string
	// only, where set, are the packages of this module that alone may be.
	only []string
	// deep extends the rule to what is reached through others.
	deep bool
	why  string
}

var rules = []rule{
	{
		name: "Postgres", from: []string{"./"},
		except: []string{"./internal/store", "./internal/testdb", "./internal/devpg", "./internal/verify/verifytest", "./bench"},
		not:    []string{"github.com/jackc/pgx", "github.com/pressly/goose", "database/sql"},
		why:    "only store speaks to Postgres (and devpg and testdb, which run one); others declare the interface they need",
	},
	{
		name: "NATS", from: []string{"./"}, except: []string{"./internal/bus", "./bench"},
		not: []string{"github.com/nats-io"},
		why: "only bus speaks to NATS; others declare the interface they need",
	},
	{
		name: "purity", from: []string{"./internal/events", "./internal/message", "./internal/tokens", "./internal/window", "./internal/hostlog", "./internal/search"}, deep: true,
		not: []string{
			"github.com/jackc", "github.com/nats-io", "github.com/pressly", "database/sql",
			"net", "net/http", "os/exec", "log/slog", "math/rand",
			"./internal/store", "./internal/bus", "./internal/engine", "./internal/worker", "./internal/api",
		},
		why: "the same input gives the same bytes on every node: no driver, no network, no chance",
	},
	{
		name: "planning", from: []string{"./internal/compact"}, deep: true,
		not: []string{"github.com/jackc", "github.com/nats-io", "database/sql", "./internal/store", "./internal/bus", "./internal/engine"},
		why: "compaction plans from what it is given and is tested without a server",
	},
	{name: "message", from: []string{"./internal/message"}, only: []string{}, why: "messages are the innermost ring"},
	{name: "events", from: []string{"./internal/events"}, only: []string{"./internal/message", "./contextengine"}, why: "events know messages and nothing else"},
	{name: "hostlog", from: []string{"./internal/hostlog"}, only: []string{"./internal/message"}, why: "a host's transcript is read without knowing what is stored of it"},
	{
		name: "adopt", from: []string{"./internal/adopt"},
		only: []string{"./contextengine", "./internal/events", "./internal/hostlog", "./internal/message", "./internal/store"},
		why:  "what a host's transcript means for a log is decided before any engine looks at it",
	},
	{name: "tokens", from: []string{"./internal/tokens"}, only: []string{"./internal/message"}, why: "estimating needs messages and nothing else"},
	{
		name: "window", from: []string{"./internal/window"},
		only: []string{"./contextengine", "./internal/events", "./internal/message", "./internal/tokens"},
		why:  "a window is a function of facts, not of who asks or where they are kept",
	},
	{
		name: "contract", from: []string{"./contextengine"}, except: []string{"./contextengine/remote"}, only: []string{},
		why: "the contract is public and stands alone",
	},
	{
		name: "store", from: []string{"./internal/store"}, deep: true,
		not: []string{"./internal/engine", "./internal/compact", "./internal/bus", "./internal/worker", "./internal/api", "./cmd"},
		why: "storage serves the engines and does not know them",
	},
	{name: "search", from: []string{"./internal/search"}, only: []string{}, why: "what a query finds in a text depends on the two alone"},
	{
		name: "retrieval", from: []string{"./internal/retrieval"}, deep: true,
		not: []string{"./internal/engine", "./internal/compact", "./internal/bus", "./internal/worker", "./internal/api", "./cmd"},
		why: "engines, workers and the HTTP side search; the search knows none of them",
	},
	{
		name: "bus", from: []string{"./internal/bus"}, deep: true,
		not: []string{"./internal/store", "./internal/engine", "./internal/compact", "./internal/worker", "./internal/api", "./cmd"},
		why: "the bus carries ids; it cannot carry content it cannot reach",
	},
	{
		name: "engine", from: []string{"./internal/engine"}, deep: true,
		not: []string{"./internal/bus", "./internal/worker", "./internal/api", "./cmd"},
		why: "an engine answers the same over HTTP, in a worker and in a test",
	},
	{
		name: "api", from: []string{"./internal/api"},
		not: []string{"./internal/worker", "./internal/bus", "./cmd"},
		why: "the HTTP side and the workers meet in cmd alone",
	},
	{
		name: "console", from: []string{"./internal/console"}, only: []string{},
		why: "the console is files; it knows the public API and nothing of the node behind it",
	},
	{
		name: "worker", from: []string{"./internal/worker"},
		not: []string{"./internal/api", "./cmd"},
		why: "the HTTP side and the workers meet in cmd alone",
	},
	{
		name: "host", from: []string{"./host"}, only: []string{"./contextengine"},
		why: "a gateway of someone else imports it and must not need the service",
	},
	{
		name: "examples", from: []string{"./examples"}, only: []string{"./contextengine", "./host"},
		why: "examples show what others can import",
	},
	{
		// enginetest is for the tests of engines, as net/http/httptest is for servers.
		name: "test helpers", from: []string{"./cmd", "./contextengine", "./host"}, except: []string{"./contextengine/enginetest"}, deep: true,
		not: []string{"testing", "./internal/testdb", "./internal/bus/bustest", "./internal/compact/summarize/llmtest", "pgregory.net/rapid", "github.com/google/go-cmp"},
		why: "the program carries no test code",
	},
}

type pkg struct {
	Dir        string
	ImportPath string
	Imports    []string
	Deps       []string
	Doc        string
	GoFiles    []string
}

func TestArrowsPointInwards(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range packages {
				if !within(p.ImportPath, r.from) || within(p.ImportPath, r.except) {
					continue
				}
				reached := p.Imports
				if r.deep {
					reached = p.Deps
				}
				for _, to := range reached {
					if r.breaks(p.ImportPath, to) {
						t.Errorf("%s imports %s: %s", p.ImportPath, to, r.why)
					}
				}
			}
		})
	}
}

// breaks tells whether the rule forbids what it binds to reach the package to.
func (r rule) breaks(from, to string) bool {
	if within(to, r.not) {
		return true
	}
	ours := within(to, []string{"./"}) && !within(to, r.from) && to != from
	return r.only != nil && ours && !within(to, r.only)
}

func within(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if strings.HasPrefix(pattern, ".") {
			pattern = module + strings.TrimSuffix(pattern[1:], "/")
		}
		return path == pattern || strings.HasPrefix(path, pattern+"/")
	})
}

func TestRulesForbidWhatTheySay(t *testing.T) {
	t.Parallel()
	deny := rule{from: []string{"./internal/a"}, not: []string{"github.com/jackc/pgx", "./internal/b"}}
	allow := rule{from: []string{"./internal/a"}, only: []string{"./internal/c"}}
	for _, tc := range []struct {
		r    rule
		to   string
		want bool
	}{
		{deny, "github.com/jackc/pgx/v5", true},
		{deny, "github.com/jackc/pgxother", false},
		{deny, module + "/internal/b/deep", true},
		{deny, module + "/internal/c", false},
		{allow, module + "/internal/c", false},
		{allow, module + "/internal/b", true},
		{allow, module + "/internal/a/part", false},
		{allow, "github.com/jackc/pgx/v5", false},
	} {
		if got := tc.r.breaks(module+"/internal/a", tc.to); got != tc.want {
			t.Errorf("breaks(%s) = %v, want %v", tc.to, got, tc.want)
		}
	}
}

func TestEveryPackageSaysWhyItExists(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		generated := p.ImportPath == module+"/internal/store/db"
		if p.Doc == "" && len(p.GoFiles) > 0 && !generated {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// list asks the go command, which knows build tags and modules.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=Dir,ImportPath,Imports,Deps,Doc,GoFiles", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 5 {
		t.Fatalf("go list named %d packages", len(packages))
	}
	return packages
}
