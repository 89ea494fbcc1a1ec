package vault

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
)

// Wrapped is a data key as it is kept: encrypted by the master key of that id.
type Wrapped struct {
	Master string
	Key    []byte
}

// Masters are the master keys of a process. The first wraps new data keys; the
// others open those that it has not rewrapped yet.
type Masters struct {
	active string
	keys   map[string]*master
}

type master struct {
	cipher.AEAD

	// proven: it has opened a key, so that one that it doesn't open is damaged.
	proven atomic.Bool
}

var masterID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// NewMasterKey is a line for a file of master keys.
func NewMasterKey(id string) (string, error) {
	if !masterID.MatchString(id) {
		return "", errors.New("an id of a master key is 1 to 64 letters, digits, dots, dashes and underscores")
	}
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	return id + " " + base64.StdEncoding.EncodeToString(key), nil
}

// ReadMasters reads a file of master keys.
func ReadMasters(file string) (*Masters, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	m, err := ParseMasters(raw)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %s: %w", file, err)
	}
	return m, nil
}

// ParseMasters reads master keys, a line each: its id, a blank, 32 bytes in
// base64. Empty lines and those that begin with # are left out. An error repeats
// nothing of a key.
func ParseMasters(text []byte) (*Masters, error) {
	m := &Masters{keys: make(map[string]*master)}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Fields(line)
		if len(parts) != 2 || !masterID.MatchString(parts[0]) {
			return nil, fmt.Errorf("line %d: want an id, a blank and a key in base64", n)
		}
		key, err := base64.StdEncoding.DecodeString(parts[1])
		if err != nil || len(key) != KeySize {
			return nil, fmt.Errorf("line %d: the key is not %d bytes in base64", n, KeySize)
		}
		if m.keys[parts[0]] != nil {
			return nil, fmt.Errorf("line %d: the id %s is there twice", n, parts[0])
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		m.keys[parts[0]] = &master{AEAD: aead}
		if m.active == "" {
			m.active = parts[0]
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if m.active == "" {
		return nil, errors.New("it holds no key")
	}
	return m, nil
}

// Active is the id of the key that wraps new data keys.
func (m *Masters) Active() string { return m.active }

// Has tells whether there is a key of an id.
func (m *Masters) Has(id string) bool { return m.keys[id] != nil }

func wrapPlace(master, tenant string, sid uuid.UUID) []byte {
	return append(append([]byte("engined key 1\x00"+master+"\x00"), sid[:]...), tenant...)
}

func (m *Masters) wrap(tenant string, sid uuid.UUID, dataKey []byte) Wrapped {
	//nolint:gosec // the nonce is random and in front: see NewGCMWithRandomNonce
	return Wrapped{Master: m.active, Key: m.keys[m.active].Seal(nil, nil, dataKey, wrapPlace(m.active, tenant, sid))}
}

// unwrap opens a data key. What does not open is damaged if the master key has
// opened others, and ErrMaster if not: then it may be another one under its id.
func (m *Masters) unwrap(tenant string, sid uuid.UUID, w Wrapped) ([]byte, error) {
	by := m.keys[w.Master]
	if by == nil {
		return nil, fmt.Errorf("%w: %q", ErrMaster, w.Master)
	}
	key, err := by.Open(nil, nil, w.Key, wrapPlace(w.Master, tenant, sid))
	switch {
	case err == nil && len(key) == KeySize:
		by.proven.Store(true)
		return key, nil
	case by.proven.Load():
		return nil, &CorruptError{SID: sid, Kind: SessionKey}
	}
	return nil, fmt.Errorf("%w: the key under the id %q is another one, or the row of session %s is damaged", ErrMaster, w.Master, sid)
}
