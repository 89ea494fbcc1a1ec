// Package storetest opens stores for tests, encrypted ones where the
// environment asks for it, so that whole suites run both ways.
package storetest

import (
	"context"
	"os"
	"testing"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

// Env is the variable that has all sessions of tests encrypted when it is "1".
const Env = "ENGINED_TEST_ENCRYPTION"

// Encrypted reports whether Env asks for encryption.
func Encrypted() bool { return os.Getenv(Env) == "1" }

// Overhead is by how many bytes what is stored is longer than what was sent.
func Overhead() int64 {
	if Encrypted() {
		return vault.Overhead
	}
	return 0
}

// masterKeys is one key, the same for all stores of a run, as nodes share theirs.
const masterKeys = "test AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// Open opens a store as store.Open does, with encryption where Env asks for it.
func Open(tb testing.TB, ctx context.Context, cfg store.Config) (*store.Store, error) { //nolint:revive // as in the testing package
	tb.Helper()
	if Encrypted() && cfg.Vault == nil {
		cfg = Encrypt(tb, cfg)
	}
	return store.Open(ctx, cfg)
}

// Encrypt is a configuration with encryption, its keys in the log's database.
func Encrypt(tb testing.TB, cfg store.Config) store.Config {
	tb.Helper()
	cfg.Vault, cfg.Encrypt = Vault(tb, cfg.URL, masterKeys), true
	return cfg
}

// Vault opens the session keys of a database under master keys.
func Vault(tb testing.TB, url, masters string) *vault.Vault {
	tb.Helper()
	m, err := vault.ParseMasters([]byte(masters))
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := store.OpenSessionKeys(context.WithoutCancel(tb.Context()), url, false)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(keys.Close)
	return vault.New(keys, m)
}
