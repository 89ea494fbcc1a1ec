package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

// everyones are the statements that are about more than one tenant, and why.
var everyones = map[string]string{
	"DueDebt": "sweep: takes what is due, of whoever", "DueRedo": "sweep", "DueGraves": "sweep", "ExpiredChildren": "sweep",
	"Expired": "sweep: retention", "TenantsToKeep": "sweep: retention", "StrayDebts": "doctor", "DropOldJobs": "sweep",
	"CountDebt": "metrics: a number", "CountRedo": "metrics: a number", "GatesInUse": "metrics: numbers", "SpendersToday": "operators and metrics",
	"NoticesAfter": "relay: ids of all sessions", "SearchBehind": "indexing: which tenants are behind", "SearchTenants": "rebuild: the tenants' names", "SearchLag": "metrics: numbers",
	"SessionsAfter": "doctor and rebuild: ids of all sessions", "SessionTables": "catalogue",
	"KeyByID": "a key tells its tenant", "CountKeys": "whether there is any key", "RevokeKey": "operators, by id", "KeysUsed": "a node's uses, by id",
	"WorthPreparing": "sweep: each session with its own tenant", "RecountBytes": "new era: all tenants are counted anew", "RestartSearch": "new era", "ResumSearch": "new era",
	"SessionsOfKey": "doctor and rebuild: ids of sessions", "DropStrayDebts": "doctor", "CallDebts": "rebuild", "CallRedos": "rebuild",
	"ListKeys": "operators: of one tenant or all", "ListTenantLimits": "operators", "ForgetAudit": "sweep: retention",
	"SessionKeysByMaster": "operators: which master keys are in use", "SessionKeysNotUnder": "operators: rotation", "CountSealed": "doctor: numbers", "NewestSealed": "doctor and starting nodes: ids of sessions",
}

// TestEveryStatementNamesItsTenant reads queries/*.sql: whatever a statement
// takes from a table with a tenant is held to one.
func TestEveryStatementNamesItsTenant(t *testing.T) {
	t.Parallel()
	tables := tenantTables(t, connect(t, testdb.New(t)))
	files, err := filepath.Glob("../../queries/*.sql")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	unused := make(map[string]bool)
	for name := range everyones {
		unused[name] = true
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range strings.Split(string(raw), "-- name: ")[1:] {
			name, sql, _ := strings.Cut(statement, " ")
			free := tenantless(sql, tables)
			if len(free) == 0 && strings.Contains(sql, "tenant_id") && !strings.Contains(sql, "@tenant_id") {
				free = []string{"all of it"}
			}
			if _, known := everyones[name]; known {
				delete(unused, name)
				continue
			}
			if len(free) > 0 {
				t.Errorf("%s: %s takes %s without a tenant", filepath.Base(file), name, strings.Join(free, ", "))
			}
		}
	}
	for name := range unused {
		t.Errorf("everyones has %s, which is no statement", name)
	}
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	// from finds a table where rows are taken from it, and what it is called there.
	from = regexp.MustCompile(`(?i)\b(FROM|JOIN|UPDATE|USING)\s+([a-z_]+)(?:\s+(?:AS\s+)?([a-z_]+))?`)
	into = regexp.MustCompile(`(?i)\bINSERT\s+INTO\s+([a-z_]+)(?:\s+AS\s+[a-z_]+)?\s*\(([^)]*)\)`)
)

// words that follow a table and are not its other name.
var words = []string{
	"where", "set", "on", "order", "left", "join", "cross", "limit", "group", "for", "union", "inner", "using", "select", "values", "returning", "as", "having",
}

// tenantless lists the tables that a statement uses without naming a tenant.
func tenantless(sql string, tables []string) (free []string) {
	sql = comment.ReplaceAllString(sql, " ")
	for _, m := range from.FindAllStringSubmatch(sql, -1) {
		table, alias := m[2], m[3]
		if !slices.Contains(tables, table) {
			continue
		}
		named := `\btenant_id\s*(=|IS NOT DISTINCT FROM)`
		if alias != "" && !slices.Contains(words, strings.ToLower(alias)) {
			named = `\b` + alias + `\.tenant_id\s*(=|IS NOT DISTINCT FROM)|(=|IS NOT DISTINCT FROM)\s*` + alias + `\.tenant_id\b`
			if strings.EqualFold(m[1], "UPDATE") || strings.EqualFold(m[1], "FROM") && strings.Count(sql, "tenant_id") > 0 && len(from.FindAllString(sql, -1)) == 1 {
				named += `|\btenant_id\s*=`
			}
		}
		if !regexp.MustCompile(named).MatchString(sql) {
			free = append(free, table)
		}
	}
	for _, m := range into.FindAllStringSubmatch(sql, -1) {
		if slices.Contains(tables, m[1]) && !strings.Contains(m[2], "tenant_id") {
			free = append(free, "into "+m[1])
		}
	}
	return free
}

func TestTenantless(t *testing.T) {
	t.Parallel()
	tables := []string{"events", "sessions"}
	for sql, want := range map[string]int{
		"SELECT * FROM events WHERE tenant_id = $1":                                              0,
		"SELECT * FROM events WHERE sid = $1":                                                    1,
		"SELECT * FROM events e WHERE e.sid = $1 -- e.tenant_id = $1":                            1,
		"SELECT * FROM events e JOIN sessions s ON s.sid = e.sid WHERE e.tenant_id = $1":         1,
		"SELECT * FROM events e JOIN sessions s ON s.tenant_id = e.tenant_id WHERE e.sid = $1":   0,
		"SELECT * FROM sessions s WHERE s.tenant_id = $1 AND EXISTS (SELECT FROM events x)":      1,
		"DELETE FROM events WHERE sid = $1":                                                      1,
		"UPDATE sessions SET head = 1 WHERE sid = $1":                                            1,
		"INSERT INTO events (sid) VALUES ($1)":                                                   1,
		"INSERT INTO events AS e (tenant_id, sid) VALUES ($1, $2)":                               0,
		"DELETE FROM events e USING sessions s WHERE e.tenant_id = $1 AND s.sid = e.sid":         1,
		"SELECT tenant_id FROM events":                                                           1,
		"SELECT * FROM unnest($1) u CROSS JOIN LATERAL (SELECT FROM events x WHERE x.seq = u) y": 1,
	} {
		if got := tenantless(sql, tables); len(got) != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}
