package main

import "testing"

func TestHostsKeepSecrets(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"postgres://u:secret@db:5433/engined?sslmode=disable": "db:5433/engined",
		"host=/run/pg user=u password=secret dbname=x":        "of the setting database-url",
		"postgres://%zz": "of the setting database-url",
	} {
		if got := databaseHost(setting); got != want {
			t.Errorf("Postgres %s: %q", setting, got)
		}
	}
}
