package config

import "math"

// Option is one setting.
type Option struct {
	// Name is the flag and the key of the file.
	Name string
	// Default as text; empty where there is none.
	Default string
	Usage   string
	Scope   Scope
	// Secret values are masked wherever settings are shown.
	Secret bool
	// Alias is a variable of the environment that counts where Env is unset.
	Alias string

	bind func(*Config) Value
}

// Options is the table.
func Options() []Option {
	return []Option{
		{
			Name: "listen", Default: "127.0.0.1:7420", Scope: Node,
			Usage: "address to answer HTTP on; port 0 picks a free one",
			bind:  func(c *Config) Value { return text(&c.Listen, "host:port") },
		},
		{
			Name: "keys", Scope: Node, Secret: true,
			Usage: "API keys beside those in Postgres, as TOKEN=TENANT or TOKEN=TENANT=SCOPE+SCOPE, separated by commas; scope admin where none is said",
			bind:  func(c *Config) Value { return list(&c.Keys, "list", checkKey) },
		},
		{
			Name: "tls-cert", Scope: Node,
			Usage: "file with the node's certificate and its chain; with it the node answers HTTPS alone, and reads the file again when it changes",
			bind:  func(c *Config) Value { return text(&c.TLSCert, "file") },
		},
		{
			Name: "tls-key", Scope: Node,
			Usage: "file with the certificate's key",
			bind:  func(c *Config) Value { return text(&c.TLSKey, "file") },
		},
		{
			Name: "max-calls", Default: "1024", Scope: Node,
			Usage: "calls answered at one time; more get 503 with Retry-After. 0 is without a limit",
			bind:  func(c *Config) Value { return count(&c.MaxCalls, 0, 1_000_000) },
		},
		{
			Name: "max-searches", Default: "0", Scope: Node,
			Usage: "searches that run at one time, each with a connection; four times as many wait for up to 2 s, more get 503 with Retry-After. 0 is a quarter of database-conns",
			bind:  func(c *Config) Value { return count(&c.MaxSearches, 0, 10_000) },
		},
		{
			Name: "tenant-rate", Default: "0", Scope: Node,
			Usage: "calls a second of a tenant on one node, twice as many at once; more get 429. 0 is without a limit, here and below; `tenants set` says other limits for single tenants",
			bind:  func(c *Config) Value { return rate(&c.TenantRate) },
		},
		{
			Name: "tenant-concurrency", Default: "0", Scope: Node,
			Usage: "calls of a tenant at one time on one node; more get 429; 0 is three quarters of max-calls where keys are demanded, else no limit",
			bind:  func(c *Config) Value { return count(&c.TenantConcurrency, 0, 1_000_000) },
		},
		{
			Name: "tenant-sessions", Default: "0", Scope: Node,
			Usage: "sessions of a tenant; further ones get 403 `tenant-limit`",
			bind:  func(c *Config) Value { return count(&c.TenantSessions, 0, math.MaxInt32) },
		},
		{
			Name: "tenant-storage", Default: "0B", Scope: Node,
			Usage: "bytes of a tenant's events; with more, writes get 403 `tenant-limit`",
			bind:  func(c *Config) Value { return sizeOrNone(&c.TenantStorage) },
		},
		{
			Name: "tenant-spend", Default: "0", Scope: Node | Working,
			Usage: "most US dollars that a tenant's summaries may cost in a day (UTC), by the prices that are set; with more, only summarizers without a price are asked",
			bind:  func(c *Config) Value { return rate(&c.TenantSpend) },
		},
		{
			Name: "console", Default: "true", Scope: Node,
			Usage: "serve the web console under /console/; see docs/console.md",
			bind:  func(c *Config) Value { return yesNo(&c.Console) },
		},
		{
			Name: "audit", Default: "true", Scope: Node | Working | Keeping,
			Usage: "record who called what and what retention erased; see docs/security.md",
			bind:  func(c *Config) Value { return yesNo(&c.Audit) },
		},
		{
			Name: "audit-retention", Default: "90d", Scope: Node,
			Usage: "how long the record is kept",
			bind:  func(c *Config) Value { return somePeriod(&c.AuditRetention) },
		},
		{
			Name: "engine", Default: "lossless", Scope: Node | Working,
			Usage: "id of the engine in the context engine slot, in its own case; none is the default engine, legacy, which also serves when this one is unknown or broken",
			bind:  func(c *Config) Value { return text(&c.Engine, "id") },
		},
		{
			Name: "engines", Scope: Node | Working, Secret: true,
			Usage: "engines in other processes that may serve, as ID=URL, separated by commas, each with ;owner=NAME, ;token-env=VARIABLE or ;timeout=DURATION behind it where wanted; see docs/remote-engines.md",
			bind:  func(c *Config) Value { return list(&c.Engines, "ids and urls", checkEngine) },
		},
		{
			Name: "engine-timeout", Default: "10s", Scope: Node,
			Usage: "longest time that an engine which is not built in has for a call before the default engine answers; at most two thirds of request-timeout",
			bind:  func(c *Config) Value { return duration(&c.EngineTimeout) },
		},
		{
			Name: "engine-timeouts", Scope: Node,
			Usage: "other times for single operations of such engines, as OPERATION=DURATION (assemble=2s,commitTurn=5s), separated by commas",
			bind:  func(c *Config) Value { return list(&c.EngineTimeoutList, "durations", checkTimeout) },
		},
		{
			Name: "default-token-budget", Default: "128000", Scope: Node | Working | Owing | Replaying,
			Usage: "token budget of sessions whose host never told one",
			bind:  func(c *Config) Value { return count(&c.DefaultTokenBudget, 1, math.MaxInt32) },
		},
		{
			Name: "model-windows", Scope: Node | Working | Owing | Replaying,
			Usage: "what models have room for and when their sessions are compacted, as MODEL=WINDOW:RESERVE:THRESHOLD:SOFT (claude-*=200000:16000:0.9, or gpt-*=::0.7 for a threshold alone), separated by commas; of each value the first match that has one counts; window without reserve is the budget where the host names the model but no budget, the thresholds take the place of compaction-threshold",
			bind:  func(c *Config) Value { return list(&c.ModelWindowList, "models", checkModelWindow) },
		},
		{
			Name: "request-timeout", Default: "30s", Scope: Node,
			Usage: "longest time for a call",
			bind:  func(c *Config) Value { return duration(&c.RequestTimeout) },
		},
		{
			Name: "compact-timeout", Default: "3m", Scope: Node | Working,
			Usage: "longest time for a compaction, whichever engine serves and whoever asks",
			bind:  func(c *Config) Value { return duration(&c.CompactTimeout) },
		},
		{
			Name: "max-message-bytes", Default: "8MiB", Scope: Node,
			Usage: "largest message",
			bind:  func(c *Config) Value { return size(&c.MaxMessageBytes) },
		},
		{
			Name: "max-batch-bytes", Default: "64MiB", Scope: Node,
			Usage: "largest request body",
			bind:  func(c *Config) Value { return size(&c.MaxBatchBytes) },
		},
		{
			Name: "max-batch-messages", Default: "10000", Scope: Node,
			Usage: "most messages in one request",
			bind:  func(c *Config) Value { return count(&c.MaxBatchMessages, 1, 1_000_000) },
		},
		{
			Name: "max-nesting", Default: "512", Scope: Node,
			Usage: "deepest nesting of a message's JSON",
			bind:  func(c *Config) Value { return count(&c.MaxNesting, 8, 5000) },
		},
		{
			Name: "worker", Default: "false", Scope: Serving,
			Usage: "compact in this process too",
			bind:  func(c *Config) Value { return yesNo(&c.Worker) },
		},
		{
			Name: "no-migrate", Default: "false", Scope: Starting,
			Usage: "leave the schema as it is; refuse to start on another one",
			bind:  func(c *Config) Value { return yesNo(&c.NoMigrate) },
		},
		{
			Name: "insecure", Default: "false", Scope: Node,
			Usage: "demand no keys where the setting keys has none: who sends none is admin of the tenant default; `dev` on loopback does so by itself",
			bind:  func(c *Config) Value { return yesNo(&c.Insecure) },
		},
		{
			Name: "data", Scope: Dev,
			Usage: "directory of Postgres and NATS; by default .engined where that exists, else a directory of the user",
			bind:  func(c *Config) Value { return text(&c.Data, "dir") },
		},
		{
			Name: "database-url", Scope: Database, Secret: true, Alias: "DATABASE_URL",
			Usage: "Postgres connection string; `dev` runs a private Postgres where there is none",
			bind:  func(c *Config) Value { return text(&c.DatabaseURL, "url") },
		},
		{
			Name: "database-conns", Default: "16", Scope: Database,
			Usage: "most connections to Postgres",
			bind:  func(c *Config) Value { return count(&c.DatabaseConns, 2, 10_000) },
		},
		{
			Name: "statement-timeout", Default: "30s", Scope: Database,
			Usage: "longest time for a statement, held by Postgres",
			bind:  func(c *Config) Value { return duration(&c.StatementTimeout) },
		},
		{
			Name: "pgbouncer", Default: "false", Scope: Database,
			Usage: "no prepared statements and no session settings, for a pooler in transaction mode",
			bind:  func(c *Config) Value { return yesNo(&c.PgBouncer) },
		},
		{
			Name: "encryption", Default: "off", Scope: Database,
			Usage: "on encrypts what new sessions say, each under a key of its own; needs encryption-key-file, on every node and worker; see docs/encryption.md",
			bind:  func(c *Config) Value { return oneOf(&c.Encryption, "off", "on") },
		},
		{
			Name: "encryption-key-file", Scope: Database,
			Usage: "file of master keys, a line each (`engined encryption new-key` makes one); the first wraps the keys of new sessions. With encryption off, sessions that are encrypted already stay readable by it",
			bind:  func(c *Config) Value { return text(&c.EncryptionKeyFile, "file") },
		},
		{
			Name: "encryption-keys-dsn", Scope: Database, Secret: true,
			Usage: "Postgres for the keys of sessions, best one that is not backed up with the log; without it they are in the table session_keys of database-url, which backups are to leave out",
			bind:  func(c *Config) Value { return text(&c.EncryptionKeysDSN, "url") },
		},
		{
			Name: "row-security", Default: "auto", Scope: Database,
			Usage: "have Postgres hold every query about a tenant to its rows: `on` refuses to start where that is not possible, `auto` says so in the log; see docs/security.md",
			bind:  func(c *Config) Value { return oneOf(&c.RowSecurity, "auto", "on", "off") },
		},
		{
			Name: "nats-url", Default: "nats://127.0.0.1:4222", Scope: Bus, Secret: true,
			Usage: "NATS servers, separated by commas",
			bind:  func(c *Config) Value { return text(&c.NATSURL, "url") },
		},
		{
			Name: "nats-creds", Scope: Bus,
			Usage: "file with NATS credentials",
			bind:  func(c *Config) Value { return text(&c.NATSCreds, "file") },
		},
		{
			Name: "nats-ca", Scope: Bus,
			Usage: "file with the certificate authority of the NATS servers",
			bind:  func(c *Config) Value { return text(&c.NATSCA, "file") },
		},
		{
			Name: "nats-cert", Scope: Bus,
			Usage: "file with the client certificate",
			bind:  func(c *Config) Value { return text(&c.NATSCert, "file") },
		},
		{
			Name: "nats-key", Scope: Bus,
			Usage: "file with the client certificate's key",
			bind:  func(c *Config) Value { return text(&c.NATSKey, "file") },
		},
		{
			Name: "nats-replicas", Default: "1", Scope: Bus,
			Usage: "replicas of the streams; 3 in a cluster",
			bind:  func(c *Config) Value { return count(&c.NATSReplicas, 1, 5) },
		},
		{
			Name: "health-listen", Scope: Alone,
			Usage: "address on which a worker answers /healthz, /readyz and /metrics; none by default",
			bind:  func(c *Config) Value { return text(&c.HealthListen, "host:port") },
		},
		{
			Name: "worker-concurrency", Default: "2", Scope: Working,
			Usage: "compactions at one time",
			bind:  func(c *Config) Value { return count(&c.WorkerConcurrency, 1, 256) },
		},
		{
			Name: "ack-wait", Default: "30s", Scope: Working,
			Usage: "how long a worker may be silent before its job goes to another; the same for all workers",
			bind:  func(c *Config) Value { return duration(&c.AckWait) },
		},
		{
			Name: "sweep-interval", Default: "5s", Scope: Working,
			Usage: "pause between looks for compactions that are owed and that no job stands for",
			bind:  func(c *Config) Value { return duration(&c.SweepInterval) },
		},
		{
			Name: "index-interval", Default: "1s", Scope: Working,
			Usage: "pause between looks for events that search has not indexed",
			bind:  func(c *Config) Value { return duration(&c.IndexInterval) },
		},
		{
			Name: "sweep-lease", Default: "1m", Scope: Working,
			Usage: "how long a job that a sweep sent is waited for before it is sent again",
			bind:  func(c *Config) Value { return duration(&c.SweepLease) },
		},
		{
			Name: "prune-results", Default: "off", Scope: Node,
			Usage: "how windows show old tool results: off as they are, trim without their middle from three tenths of the budget on, clear as trim and from half of it on not at all; see docs/windows.md",
			bind:  func(c *Config) Value { return oneOf(&c.PruneResults, "off", "trim", "clear") },
		},
		{
			Name: "prune-keep", Default: "3", Scope: Node,
			Usage: "newest assistant messages that pruning leaves alone, with what follows them",
			bind:  func(c *Config) Value { return count(&c.PruneKeep, 1, 10_000) },
		},
		{
			Name: "hook-url", Scope: Node | Working, Secret: true,
			Usage: "where to POST before and after compactions; see docs/hooks.md",
			bind:  func(c *Config) Value { return text(&c.HookURL, "url") },
		},
		{
			Name: "hook-secret", Scope: Node | Working, Secret: true,
			Usage: "secret that signs those requests",
			bind:  func(c *Config) Value { return text(&c.HookSecret, "token") },
		},
		{
			Name: "hook-timeout", Default: "5s", Scope: Node | Working,
			Usage: "how long a compaction waits for the hook before it",
			bind:  func(c *Config) Value { return duration(&c.HookTimeout) },
		},
		{
			Name: "rewrite-results", Default: "false", Scope: Node | Working,
			Usage: "replace old tool results in windows by shorter forms, behind turns, each time in one epoch step; see docs/engines.md",
			bind:  func(c *Config) Value { return yesNo(&c.RewriteResults) },
		},
		{
			Name: "rolling-turns", Default: "4", Scope: Node | Working | Replaying,
			Usage: "newest turns that the engine rolling keeps verbatim, as far as they fit",
			bind:  func(c *Config) Value { return count(&c.RollingTurns, 1, 1000) },
		},
		{
			Name: "retention-age", Default: "0s", Scope: Working | Keeping,
			Usage: "age, from its first write, at which a session is erased, such as 365d; 0s keeps it",
			bind:  func(c *Config) Value { return period(&c.RetentionAge) },
		},
		{
			Name: "retention-idle", Default: "0s", Scope: Working | Keeping,
			Usage: "time since its newest write after which a session is erased, such as 90d; 0s keeps it",
			bind:  func(c *Config) Value { return period(&c.RetentionIdle) },
		},
		{
			Name: "retention-size", Default: "0B", Scope: Working | Keeping,
			Usage: "bytes of a tenant's events to keep; of more, the sessions that were idle the longest are erased; 0B keeps all, and `tenants set --keep` says other sizes for single tenants",
			bind:  func(c *Config) Value { return sizeOrNone(&c.RetentionSize) },
		},
		{
			Name: "retention-floor", Default: "1d", Scope: Working | Keeping,
			Usage: "time since its newest write within which a session is never erased for its size, nor those it was forked from",
			bind:  func(c *Config) Value { return period(&c.RetentionFloor) },
		},
		{
			Name: "retention-interval", Default: "10m", Scope: Working,
			Usage: "how often a worker looks for what retention has to erase",
			bind:  func(c *Config) Value { return duration(&c.RetentionInterval) },
		},
		{
			Name: "compaction-threshold", Default: "0.85", Scope: Node | Working | Owing | Replaying,
			Usage: "part of the budget above which a session owes a compaction",
			bind:  func(c *Config) Value { return share(&c.CompactionThreshold) },
		},
		{
			Name: "compaction-target", Default: "0.6", Scope: Node | Working | Replaying,
			Usage: "part of the budget that a compaction aims for; the default, and one that is not below compaction-threshold, is lowered with it",
			bind:  func(c *Config) Value { return share(&c.CompactionTarget) },
		},
		{
			Name: "compaction-tail", Default: "0.3", Scope: Node | Working | Replaying,
			Usage: "part of the budget that the newest messages keep verbatim at least; they keep more while compaction-target leaves room",
			bind:  func(c *Config) Value { return share(&c.CompactionTail) },
		},
		{
			Name: "summarizers", Scope: Node | Working, Secret: true,
			Usage: "models that write summaries, as NAME=KIND:MODEL@URL, separated by commas, asked in this order; KIND is openai, anthropic, host or extractive, and a key is taken from ENGINED_SUMMARIZER_NAME_KEY; with none the built-in extractive one writes; see docs/compaction.md",
			bind:  func(c *Config) Value { return list(&c.SummarizerList, "list", checkSummarizer) },
		},
		{
			Name: "summarizer-tenants", Scope: Node | Working,
			Usage: "summarizers of single tenants, as TENANT=NAME+NAME, separated by commas; other tenants use all, in their order",
			bind:  func(c *Config) Value { return list(&c.SummarizerTenants, "list", checkSummarizerTenant) },
		},
		{
			Name: "summarizer-prices", Scope: Node | Working,
			Usage: "prices in US dollars per million tokens, as NAME=INPUT/OUTPUT, separated by commas",
			bind:  func(c *Config) Value { return list(&c.SummarizerPrices, "list", checkPrice) },
		},
		{
			Name: "summarizer-limits", Scope: Node | Working,
			Usage: "most US dollars that a tenant may spend with a summarizer in a day (UTC), as NAME=DOLLARS, separated by commas; needs its price",
			bind:  func(c *Config) Value { return list(&c.SummarizerLimits, "list", checkLimit) },
		},
		{
			Name: "summarizer-timeout", Default: "2m", Scope: Node | Working,
			Usage: "longest time for one question to a model",
			bind:  func(c *Config) Value { return duration(&c.SummarizerTimeout) },
		},
		{
			Name: "summarizer-idle", Default: "45s", Scope: Node | Working,
			Usage: "longest silence of a model before its answer is given up",
			bind:  func(c *Config) Value { return duration(&c.SummarizerIdle) },
		},
		{
			Name: "summarizer-lease", Default: "15s", Scope: Node | Working,
			Usage: "how long a question for a host's own model waits for a gateway to take it before the next summarizer is asked",
			bind:  func(c *Config) Value { return duration(&c.SummarizerLease) },
		},
		{
			Name: "summarizer-failures", Default: "5", Scope: Node | Working,
			Usage: "failures of a provider in a row after which it is left alone for a while",
			bind:  func(c *Config) Value { return count(&c.SummarizerFailures, 1, 1000) },
		},
		{
			Name: "summary-parallel", Default: "4", Scope: Node | Working,
			Usage: "summaries of one compaction that are written at one time",
			bind:  func(c *Config) Value { return count(&c.SummaryParallel, 1, 64) },
		},
		{
			Name: "last-resort-after", Default: "4", Scope: Node | Working,
			Usage: "failed tries of a compaction after which the extractive summarizer writes in the models' place, until they answer again; it does at once where a window is over its budget; 0 for never",
			bind:  func(c *Config) Value { return count(&c.LastResortAfter, 0, 1000) },
		},
		{
			Name: "compaction-prepare", Default: "true", Scope: Working,
			Usage: "ask models for the summaries of whole chunks from 8 tenths of compaction-threshold on, before the compaction is owed",
			bind:  func(c *Config) Value { return yesNo(&c.CompactionPrepare) },
		},
		{
			Name: "redact", Default: "true", Scope: Node | Working,
			Usage: "take secrets out of what models are shown",
			bind:  func(c *Config) Value { return yesNo(&c.Redact) },
		},
		{
			Name: "redact-file", Scope: Node | Working,
			Usage: "file with further secrets to take out, one KIND=EXPRESSION a line",
			bind:  func(c *Config) Value { return text(&c.RedactFile, "file") },
		},
		{
			Name: "url", Default: "http://127.0.0.1:7420", Scope: Client,
			Usage: "node to talk to",
			bind:  func(c *Config) Value { return text(&c.URL, "url") },
		},
		{
			Name: "key", Scope: Client, Secret: true,
			Usage: "API key",
			bind:  func(c *Config) Value { return text(&c.Key, "token") },
		},
		{
			Name: "ca", Scope: Client,
			Usage: "file with a certificate authority of the node, beside the system's",
			bind:  func(c *Config) Value { return text(&c.CA, "file") },
		},
		{
			Name: "log-level", Default: "info", Scope: General,
			Usage: "least level that is logged; `dev` and `demo` start at warn",
			bind:  func(c *Config) Value { return oneOf(&c.LogLevel, "debug", "info", "warn", "error") },
		},
		{
			Name: "log-format", Default: "text", Scope: General,
			Usage: "form of the log on stderr",
			bind:  func(c *Config) Value { return oneOf(&c.LogFormat, "text", "json") },
		},
		{
			Name: "shutdown-grace", Default: "15s", Scope: General,
			Usage: "longest time for an orderly end; calls still running then are cut off",
			bind:  func(c *Config) Value { return duration(&c.ShutdownGrace) },
		},
	}
}
