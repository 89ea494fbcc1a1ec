package main

import "testing"

func TestHostsKeepSecrets(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"nats://127.0.0.1:4222":                "127.0.0.1:4222",
		"nats://u:secret@a:1, tls://token@b:2": "a:1, b:2",
		"u:secret@c:4222":                      "c:4222",
		"d:4222":                               "d:4222",
	} {
		if got := natsHosts(setting); got != want {
			t.Errorf("NATS %s: %q", setting, got)
		}
	}
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
