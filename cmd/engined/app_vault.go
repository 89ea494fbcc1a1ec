package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

// openVault reads the master keys and connects to where the session keys are;
// nil without an encryption-key-file. end closes the connections.
func openVault(ctx context.Context, cfg config.Config) (v *vault.Vault, end func(), err error) {
	if cfg.EncryptionKeyFile == "" {
		if cfg.Encryption == "on" {
			return nil, nil, errors.New("encryption: on needs encryption-key-file; engined encryption new-key makes a key for it")
		}
		return nil, func() {}, nil
	}
	masters, err := vault.ReadMasters(cfg.EncryptionKeyFile)
	if err != nil {
		return nil, nil, err
	}
	url := cfg.DatabaseURL
	if cfg.EncryptionKeysDSN != "" {
		url = cfg.EncryptionKeysDSN
		if !cfg.NoMigrate {
			if err := store.MigrateSessionKeys(ctx, url); err != nil {
				return nil, nil, fmt.Errorf("encryption-keys-dsn: %w", err)
			}
		}
	}
	keys, err := store.OpenSessionKeys(ctx, url, cfg.PgBouncer)
	if err != nil {
		return nil, nil, err
	}
	return vault.New(keys, masters), keys.Close, nil
}

// checkedVault is openVault that refuses master keys which do not open what is
// stored: it is better not to serve than to tell every caller so.
func checkedVault(ctx context.Context, cfg config.Config) (*vault.Vault, func(), error) {
	v, end, err := openVault(ctx, cfg)
	if err != nil || v == nil {
		return v, end, err
	}
	if _, err := v.Check(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("encryption-key-file: %w", err)
	}
	return v, end, nil
}

// keysElsewhere says that the key store has no key of any of the encrypted
// sessions that are looked at: it is another one than theirs, or they are lost.
// Sessions would seem destroyed, and an erasure would destroy nothing.
func keysElsewhere(ctx context.Context, v *vault.Vault, s *store.Store) error {
	const looked = 16
	sessions, err := s.NewestSealed(ctx, looked)
	if err != nil || len(sessions) == 0 {
		return err
	}
	for _, id := range sessions {
		if kept, err := v.Keeps(ctx, id.Tenant, id.SID); err != nil || kept {
			return err
		}
	}
	return fmt.Errorf("none of the %s that began last has its key here: other nodes have other encryption-keys-dsn, or the keys are lost; what is erased here keeps its key there",
		plural(len(sessions), "encrypted session"))
}

// openSealed opens a store that can read what is encrypted. end closes both.
func openSealed(ctx context.Context, cfg config.Config, with store.Config) (s *store.Store, end func(), err error) {
	v, closeKeys, err := checkedVault(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	with.Vault, with.Encrypt = v, v != nil && cfg.Encryption == "on"
	if s, err = store.Open(ctx, with); err != nil {
		closeKeys()
		return nil, nil, err
	}
	return s, func() { s.Close(); closeKeys() }, nil
}
