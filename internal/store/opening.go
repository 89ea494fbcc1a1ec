package store

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/vault"
)

// opener decrypts what is read of one session. It asks for the key when the
// first encrypted byte comes, so plain sessions cost nothing.
type opener struct {
	store  *Store
	tenant string
	sid    uuid.UUID
	sealer *vault.Sealer
}

func (s *Store) opener(tenant string, sid uuid.UUID) *opener {
	return &opener{store: s, tenant: tenant, sid: sid}
}

// key is the session's; an error where it can't be had.
func (o *opener) key(ctx context.Context) (*vault.Sealer, error) {
	if o.sealer != nil {
		return o.sealer, nil
	}
	if o.store.cfg.Vault == nil {
		return nil, vault.ErrClosed
	}
	k, err := o.store.cfg.Vault.Of(ctx, o.tenant, o.sid)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return nil, vault.ErrKeyGone
	}
	o.sealer = k
	return k, nil
}

// perhaps is the key of a session with events, nil where it is not encrypted.
func (o *opener) perhaps(ctx context.Context) (*vault.Sealer, error) {
	if o.sealer != nil || o.store.cfg.Vault == nil {
		return o.sealer, nil
	}
	var err error
	o.sealer, err = o.store.cfg.Vault.Of(ctx, o.tenant, o.sid)
	return o.sealer, err
}

// event decrypts an event's body.
func (o *opener) event(ctx context.Context, seq int64, body []byte) ([]byte, error) {
	if !vault.IsSealed(body) {
		return body, nil
	}
	k, err := o.key(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := k.Open(vault.Event, nil, body)
	if c, ok := errors.AsType[*vault.CorruptError](err); ok {
		c.Seq = seq
	}
	return plain, err
}

// bytes decrypts what is no event.
func (o *opener) bytes(ctx context.Context, kind vault.Kind, detail, sealed []byte) ([]byte, error) {
	if !vault.IsSealed(sealed) {
		return sealed, nil
	}
	k, err := o.key(ctx)
	if err != nil {
		return nil, err
	}
	return k.Open(kind, detail, sealed)
}

// job is bytes for the texts of summarization jobs.
func (o *opener) job(ctx context.Context, detail []byte, sealed string) (string, error) {
	if !vault.IsSealedText(sealed) {
		return sealed, nil
	}
	k, err := o.key(ctx)
	if err != nil {
		return "", err
	}
	return k.OpenText(vault.Job, detail, sealed)
}

// seal encrypts where the session is encrypted.
func (o *opener) seal(ctx context.Context, kind vault.Kind, detail, plain []byte) ([]byte, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return plain, err
	}
	return k.Seal(kind, detail, plain), nil
}

// sealJob is seal for the texts of summarization jobs.
func (o *opener) sealJob(ctx context.Context, detail []byte, plain string) (string, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return plain, err
	}
	return k.SealText(vault.Job, detail, plain), nil
}

// hash is the plain form of a payload's hash.
func (o *opener) hash(ctx context.Context, h []byte) ([]byte, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return h, err
	}
	return k.OpenHash(h), nil
}

// unreadable tells errors of one session's bytes or key from those that pass.
func unreadable(err error) bool {
	_, corrupt := errors.AsType[*vault.CorruptError](err)
	return corrupt || errors.Is(err, vault.ErrKeyGone)
}
