package devpg

import (
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"time"
)

// Superuser is the database role every connection uses; it owns the cluster.
const Superuser = "postgres"

// Errors a caller may want to tell apart; all come wrapped with the directory
// and what to do about it.
var (
	// ErrInUse says that another process runs a cluster on the directory.
	ErrInUse = errors.New("data directory in use")
	// ErrForeignDir says that the directory holds something that is not a
	// cluster of this package. Nothing in it was touched.
	ErrForeignDir = errors.New("not a data directory of engined")
	// ErrVersion says that the cluster was made by a major version of Postgres
	// that is not installed. Nothing in it was touched.
	ErrVersion = errors.New("data directory of another PostgreSQL version")
	// ErrNoBinaries says that no usable Postgres server was found or fetched.
	ErrNoBinaries = errors.New("no PostgreSQL server found")
)

// Options says where and how a cluster runs.
type Options struct {
	// DataDir is the directory the cluster owns: absent, empty, or one that an
	// earlier Start laid out. Required.
	DataDir string
	// SocketDir overrides the directory of the Unix socket. It is made, with
	// mode 0700, where absent.
	SocketDir string
	// BinDir overrides the search for server binaries.
	BinDir string
	// Fast gives up durability (no fsync, no synchronous commit) for speed. A
	// crash of the machine loses the cluster: tests only.
	Fast bool
	// Ephemeral removes DataDir on Stop.
	Ephemeral bool
	// MaxConnections defaults to 100.
	MaxConnections int
	// Settings are further server settings, by name.
	Settings map[string]string
	// StartTimeout bounds the wait for the server to accept connections, crash
	// recovery included. Default two minutes.
	StartTimeout time.Duration
	// Log defaults to discarding.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 100
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	return o
}

// settings are the server settings given on the command line, where no file
// in the data directory can override them.
func (o Options) settings(socketDir string) map[string]string {
	s := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": socketDir,
		"unix_socket_permissions": "0700",
		"max_connections":         strconv.Itoa(o.MaxConnections),
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	if o.Fast {
		s["fsync"] = "off"
		s["synchronous_commit"] = "off"
		s["full_page_writes"] = "off"
		s["wal_level"] = "minimal"
		s["max_wal_senders"] = "0"
	}
	maps.Copy(s, o.Settings)
	return s
}
