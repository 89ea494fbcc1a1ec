package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

func (c *cli) encryption() *cobra.Command {
	cmd := &cobra.Command{
		Use: "encryption", Short: "Make and rotate the master keys of encryption at rest",
		Long: words(
			"What sessions say can be encrypted at rest, each under a key of its own; these keys are kept encrypted by a master",
			"key of encryption-key-file. See docs/encryption.md.",
		),
	}
	cmd.AddCommand(c.newMasterKey(), c.rotateKeys(), c.encryptionStatus())
	return cmd
}

func (c *cli) newMasterKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new-key [id]", Short: "Print a line for encryption-key-file", Args: cobra.MaximumNArgs(1),
		Long: words(
			"Print a new master key as a line for encryption-key-file. The first line of the file wraps the keys of new sessions,",
			"the others open those that encryption rotate has not reached yet. Without an id the day is taken.",
		),
	}
	return c.command(cmd, config.General, nil, func(_ context.Context, _ config.Config, args []string) error {
		id := "k" + c.now().UTC().Format("20060102")
		if len(args) > 0 {
			id = args[0]
		}
		line, err := vault.NewMasterKey(id)
		if err != nil {
			return usageError{err}
		}
		fmt.Fprintln(c.out, line)
		return nil
	})
}

func (c *cli) withVault(ctx context.Context, cfg config.Config, do func(*vault.Vault) error) error {
	if cfg.DatabaseURL == "" && cfg.EncryptionKeysDSN == "" {
		return usageError{errors.New("no database: set --database-url or --encryption-keys-dsn")}
	}
	v, end, err := openVault(ctx, cfg)
	if err != nil {
		return err
	}
	defer end()
	if v == nil {
		return usageError{errors.New("no master keys: set --encryption-key-file")}
	}
	return do(v)
}

func (c *cli) rotateKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate", Short: "Wrap all session keys by the first key of encryption-key-file",
		Long: words(
			"Wrap the keys of all sessions by the first master key of encryption-key-file. What is encrypted stays as it is.",
			"Nodes may serve meanwhile, if their files have both keys; a run that was broken off can be repeated.",
		),
	}
	return c.command(cmd, config.General|config.Database, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		return c.withVault(ctx, cfg, func(v *vault.Vault) error {
			due := c.paced()
			n, err := v.Rotate(ctx, func(done int) {
				if due() {
					fmt.Fprintf(c.err, "%s wrapped anew\n", plural(done, "session key"))
				}
			})
			if err != nil {
				return fmt.Errorf("%s wrapped anew, not all: %w", plural(n, "session key"), err)
			}
			fmt.Fprintf(c.out, "%s wrapped anew; all are under %s\n", plural(n, "session key"), v.Active())
			return nil
		})
	})
}

func (c *cli) encryptionStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Tell which master keys wrap how many session keys",
		Long: words(
			"Tell which master keys wrap how many session keys. It fails where encryption-key-file lacks one of them, or has another",
			"one under its id.",
		),
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.General|config.Database, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		return c.withVault(ctx, cfg, func(v *vault.Vault) error {
			uses, err := v.Check(ctx)
			list := make([]masterUse, len(uses))
			for i, u := range uses {
				list[i] = masterUse{ID: u.Master, SessionKeys: u.Keys, Active: u.Master == v.Active(), Closed: u.Closed}
			}
			if *asJSON {
				return errors.Join(printJSON(c.out, map[string]any{"masterKeys": list}), err)
			}
			for _, u := range list {
				mark := ""
				if u.Active {
					mark = " (wraps new ones)"
				}
				if u.Closed {
					mark += " (none opens)"
				}
				fmt.Fprintf(c.out, "%s: %s%s\n", u.ID, plural(u.SessionKeys, "session key"), mark)
			}
			if len(list) == 0 && err == nil {
				fmt.Fprintf(c.out, "no session keys yet; %s wraps new ones\n", v.Active())
			}
			return err
		})
	})
}

// masterUse is how machines read that.
type masterUse struct {
	ID          string `json:"id"`
	SessionKeys int64  `json:"sessionKeys"`
	Active      bool   `json:"active"`
	// Closed: none of them opens. They are damaged, or the file lacks the key.
	Closed bool `json:"closed"`
}

// checkEncryption tells whether this process could read what is encrypted.
func checkEncryption(ctx context.Context, cfg config.Config, s *store.Store) check {
	ch := check{Name: "encryption"}
	sealed, plain, err := s.CountSealed(ctx)
	if err != nil {
		ch.Detail, ch.Fix = err.Error(), "look at the log of Postgres"
		return ch
	}
	v, end, err := openVault(ctx, cfg)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "correct encryption-key-file and encryption-keys-dsn"
		return ch
	case v == nil && sealed > 0:
		ch.Detail = plural(sealed, "encrypted session") + ", and no encryption-key-file to read them with"
		ch.Fix = "give doctor and every node and worker the same encryption-key-file"
		return ch
	case v == nil:
		ch.OK, ch.Detail = true, "off"
		return ch
	}
	defer end()
	uses, err := v.Check(ctx)
	if err != nil {
		ch.Detail, ch.Fix = err.Error(), "put the missing master key into encryption-key-file, behind the first line"
		return ch
	}
	for _, u := range uses {
		if u.Closed {
			ch.Detail = fmt.Sprintf("%s under the master key %s, and none opens: damaged, or it is another master key", plural(u.Keys, "session key"), u.Master)
			ch.Fix = "correct the master key if it is another one; else run encryption rotate, which names their sessions, and erase those"
			return ch
		}
	}
	if err := keysElsewhere(ctx, v, s); err != nil {
		ch.Detail, ch.Fix = err.Error(), "give doctor and every node and worker the same encryption-keys-dsn, or put back the newest backup of the session keys"
		return ch
	}
	ch.OK = true
	ch.Detail = fmt.Sprintf("%s, new ones are plain; %s, %d plain", cfg.Encryption, plural(sealed, "encrypted session"), plain)
	if cfg.Encryption == "on" {
		ch.Detail = fmt.Sprintf("on, new sessions under %s; %s, %d plain", v.Active(), plural(sealed, "encrypted session"), plain)
	}
	return ch
}
