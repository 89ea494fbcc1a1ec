package config

import "time"

// Config is what the table's entries write into. A command reads only the
// fields of its own Scope; the others hold what the file or the environment
// says, or their default.
type Config struct {
	LogLevel  string
	LogFormat string

	Listen         string
	Insecure       bool
	Keys           []string
	MaxCalls       int
	MaxSearches    int
	Audit          bool
	Console        bool
	AuditRetention time.Duration

	TenantRate        float64
	TenantConcurrency int
	TenantSessions    int
	TenantStorage     int64
	TenantSpend       float64

	TLSCert string
	TLSKey  string

	Worker         bool
	NoMigrate      bool
	RequestTimeout time.Duration
	CompactTimeout time.Duration
	ShutdownGrace  time.Duration

	Engine             string
	Engines            []string
	EngineTimeout      time.Duration
	EngineTimeoutList  []string
	DefaultTokenBudget int
	ModelWindowList    []string
	MaxMessageBytes    int64
	MaxBatchBytes      int64
	MaxBatchMessages   int
	MaxNesting         int

	DatabaseURL       string
	DatabaseConns     int
	StatementTimeout  time.Duration
	PgBouncer         bool
	Encryption        string
	EncryptionKeyFile string
	EncryptionKeysDSN string
	RowSecurity       string

	NATSURL      string
	NATSCreds    string
	NATSCA       string
	NATSCert     string
	NATSKey      string
	NATSReplicas int

	HealthListen        string
	WorkerConcurrency   int
	AckWait             time.Duration
	SweepInterval       time.Duration
	SweepLease          time.Duration
	IndexInterval       time.Duration
	RollingTurns        int
	HookURL             string
	HookSecret          string
	HookTimeout         time.Duration
	RewriteResults      bool
	PruneResults        string
	PruneKeep           int
	RetentionAge        time.Duration
	RetentionIdle       time.Duration
	RetentionSize       int64
	RetentionFloor      time.Duration
	RetentionInterval   time.Duration
	CompactionThreshold float64
	CompactionTarget    float64
	CompactionTail      float64

	SummarizerList     []string
	SummarizerTenants  []string
	SummarizerPrices   []string
	SummarizerLimits   []string
	SummarizerTimeout  time.Duration
	SummarizerIdle     time.Duration
	SummarizerLease    time.Duration
	SummarizerFailures int
	SummaryParallel    int
	LastResortAfter    int
	CompactionPrepare  bool
	Redact             bool
	RedactFile         string

	Data string

	URL string
	Key string
	CA  string
}

// Scope is the set of commands that an option belongs to.
type Scope uint

// The scopes. A command takes the union of those that it needs.
const (
	// General options are taken by every command that runs a part of engined.
	General Scope = 1 << iota
	// Node options belong to whatever answers HTTP.
	Node
	// Serving options belong to `serve` alone.
	Serving
	// Database options belong to whatever talks to Postgres.
	Database
	// Bus options belong to whatever connects to an outside NATS.
	Bus
	// Working options belong to whatever compacts.
	Working
	// Starting options belong to `serve` and `worker`.
	Starting
	// Alone options belong to `worker` alone.
	Alone
	// Dev options belong to `dev` and to what looks into its data.
	Dev
	// Keeping options say how long sessions are kept.
	Keeping
	// Owing options say when a session owes a compaction.
	Owing
	// Replaying options say how a session is run again.
	Replaying
	// Client options belong to commands that talk to a node.
	Client
)

// titles name the scopes in the documentation, in its order.
var titles = []struct {
	scope Scope
	title string
	text  string
}{
	{Node, "A node", "Taken by `dev` and `serve`."},
	{Serving, "serve", "Taken by `serve` alone."},
	{Alone, "worker", "Taken by `worker` alone."},
	{Starting, "serve and worker", "Taken by `serve` and `worker`."},
	{Dev, "dev", "Taken by `dev`, and by `keys` and `tenants`, which find its Postgres there."},
	{Database, "Postgres", "Taken by `dev`, `serve`, `worker`, `migrate`, `doctor`, `keys` and `tenants`."},
	{Bus, "NATS", "Taken by `serve`, `worker` and `doctor`. `dev` runs its own server in the process."},
	{Working, "Compaction and retention", "Taken by `dev`, `serve` and `worker`; those of retention by `retention` too."},
	{Client, "Clients", "Taken by the commands that talk to a node."},
	{General, "Everywhere", "Taken by every command that runs a part of engined."},
}
