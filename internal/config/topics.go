package config

// Topic is what settings are about. Help lists flags by it.
type Topic struct {
	Title string
	Names []string
}

// Topics hold every setting once, in the order in which help shows them.
func Topics() []Topic {
	return []Topic{
		{"The node to talk to", []string{"url", "key", "ca"}},
		{"HTTP and keys", []string{"listen", "health-listen", "tls-cert", "tls-key", "keys", "insecure", "request-timeout", "console"}},
		{"Postgres", []string{"data", "database-url", "database-conns", "statement-timeout", "pgbouncer", "row-security", "no-migrate"}},
		{"Encryption at rest", []string{"encryption", "encryption-key-file", "encryption-keys-dsn"}},
		{"NATS", []string{"nats-url", "nats-creds", "nats-ca", "nats-cert", "nats-key", "nats-replicas"}},
		{"Engines", []string{"engine", "engines", "engine-timeout", "engine-timeouts", "rolling-turns"}},
		{"Windows", []string{"default-token-budget", "model-windows", "prune-results", "prune-keep", "rewrite-results"}},
		{"Compaction", []string{
			"worker", "worker-concurrency", "compaction-threshold", "compaction-target", "compaction-tail", "compaction-prepare",
			"compact-timeout", "last-resort-after", "ack-wait", "sweep-interval", "sweep-lease", "hook-url", "hook-secret", "hook-timeout",
		}},
		{"Summarizers", []string{
			"summarizers", "summarizer-tenants", "summarizer-prices", "summarizer-limits", "summarizer-timeout", "summarizer-idle",
			"summarizer-lease", "summarizer-failures", "summary-parallel", "redact", "redact-file",
		}},
		{"Search", []string{"index-interval", "max-searches"}},
		{"Limits", []string{
			"max-calls", "max-message-bytes", "max-batch-bytes", "max-batch-messages", "max-nesting",
			"tenant-rate", "tenant-concurrency", "tenant-sessions", "tenant-storage", "tenant-spend",
		}},
		{"Retention and audit", []string{"retention-age", "retention-idle", "retention-size", "retention-floor", "retention-interval", "audit", "audit-retention"}},
		{"Log and end", []string{"log-level", "log-format", "shutdown-grace"}},
	}
}
