package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A key is ek_ID_SECRET: the id may be shown and says which row to look at, the
// secret is 260 random bits. Both are lower-case base32.
const (
	prefix       = "ek_"
	idLength     = 12
	secretLength = 52
)

// Key is a stored key. Its secret is not there.
type Key struct {
	ID, Tenant, Name string
	Scopes           Scopes
	// Hash is the SHA-256 of the whole token. The secret is random, so a slow
	// hash would add nothing but time.
	Hash      [sha256.Size]byte
	CreatedAt time.Time
	// The rest is zero until it happens; ExpiresAt is zero for a key that does
	// not expire.
	ExpiresAt, RevokedAt, LastUsedAt time.Time
}

// ErrUnauthorized: the request carries no key, or none that counts.
var ErrUnauthorized = errors.New("a valid API key is required")

// Why a known key does not count. Each is an ErrUnauthorized, and is told only
// to who holds the secret.
var (
	ErrExpired = fmt.Errorf("%w: this one has expired", ErrUnauthorized)
	ErrRevoked = fmt.Errorf("%w: this one was revoked", ErrUnauthorized)
)

// ErrUnknownKey: no key has the id.
var ErrUnknownKey = errors.New("no API key has this id")

// NewKey makes a key and its token, which is nowhere else.
func NewKey(tenant, name string, scopes Scopes, now, expires time.Time) (Key, string) {
	id := strings.ToLower(rand.Text()[:idLength])
	token := prefix + id + "_" + strings.ToLower(rand.Text()+rand.Text())
	return Key{
		ID: id, Tenant: tenant, Name: name, Scopes: scopes, Hash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: expires,
	}, token
}

// ID is the id in a token of ours; ok is false for any other text.
func ID(token string) (id string, ok bool) {
	if len(token) != len(prefix)+idLength+1+secretLength || !strings.HasPrefix(token, prefix) || token[len(prefix)+idLength] != '_' {
		return "", false
	}
	for i := len(prefix); i < len(token); i++ {
		if b := token[i]; (b < 'a' || b > 'z') && (b < '2' || b > '7') && i != len(prefix)+idLength {
			return "", false
		}
	}
	return token[len(prefix) : len(prefix)+idLength], true
}

// check tells whether a token with this hash opens the key now.
func (k *Key) check(hash [sha256.Size]byte, now time.Time) error {
	switch {
	case subtle.ConstantTimeCompare(hash[:], k.Hash[:]) != 1:
		return ErrUnauthorized
	case !k.RevokedAt.IsZero():
		return ErrRevoked
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return ErrExpired
	}
	return nil
}

// staticName names a key of the settings without telling it.
func staticName(hash [sha256.Size]byte) string { return "static-" + hex.EncodeToString(hash[:4]) }

// maxTenant is the longest name of a tenant, in bytes.
const maxTenant = 128

// CheckTenant holds a tenant's name to what every part of the system can carry.
func CheckTenant(name string) error {
	switch {
	case name == "":
		return errors.New("a tenant's name is missing")
	case len(name) > maxTenant:
		return fmt.Errorf("a tenant's name has at most %d bytes", maxTenant)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("a tenant's name is UTF-8 without control characters")
	}
	return nil
}
