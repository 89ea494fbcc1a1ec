package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Kind is what is encrypted. It is authenticated with the bytes, so none can
// stand in another's place. The texts are part of the format.
type Kind string

// The kinds.
const (
	Event  Kind = "event"
	Draft  Kind = "draft"
	Answer Kind = "window answer"
	Lane   Kind = "transcript position"
	Job    Kind = "summarization job"
	// SessionKey is only told as damaged: a master key wraps it.
	SessionKey Kind = "session key"
)

// KeySize is the bytes of a data key and of a master key.
const KeySize = 32

// The format: a byte that begins no UTF-8 text, a version, then nonce,
// ciphertext and tag of AES-256-GCM.
const (
	mark    = 0xff
	version = 1
	header  = 2
)

// Overhead is how much longer the encrypted form is than the plain one.
const Overhead = header + 12 + 16

// textMark begins encrypted texts: a control character that no prompt has.
const textMark = "\x1asealed:1:"

// IsSealed tells encrypted bytes from plain ones.
func IsSealed(b []byte) bool { return len(b) > 0 && b[0] == mark }

// Sealer encrypts and decrypts for one session. Its methods may be called at
// the same time.
type Sealer struct {
	tenant string
	sid    uuid.UUID
	bytes  cipher.AEAD
	hashes cipher.Block
	tags   []byte
}

func newSealer(tenant string, sid uuid.UUID, dataKey []byte) (*Sealer, error) {
	s := &Sealer{tenant: tenant, sid: sid}
	derive := func(use string) ([]byte, error) { return hkdf.Key(sha256.New, dataKey, nil, "engined "+use, KeySize) }
	key, err := derive("bytes")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if s.bytes, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	if key, err = derive("hashes"); err != nil {
		return nil, err
	}
	if s.hashes, err = aes.NewCipher(key); err != nil {
		return nil, err
	}
	s.tags, err = derive("tags")
	return s, err
}

// SID is the session's.
func (s *Sealer) SID() uuid.UUID { return s.sid }

// place is what is authenticated beside the bytes: where they belong.
func (s *Sealer) place(kind Kind, detail []byte) []byte {
	b := make([]byte, 0, 1+len(s.tenant)+len(s.sid)+len(kind)+len(detail)+12)
	b = append(b, version)
	for _, part := range [][]byte{[]byte(s.tenant), s.sid[:], []byte(kind), detail} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// Seal encrypts. detail is what else tells the place apart and is known when
// it is read; it may be nil.
func (s *Sealer) Seal(kind Kind, detail, plain []byte) []byte {
	out := make([]byte, header, len(plain)+Overhead)
	out[0], out[1] = mark, version
	return s.bytes.Seal(out, nil, plain, s.place(kind, detail)) //nolint:gosec // the nonce is random, as above
}

// Open decrypts what Seal made for the same place; anything else is a
// *CorruptError. Plain bytes stay as they are.
func (s *Sealer) Open(kind Kind, detail, sealed []byte) ([]byte, error) {
	if !IsSealed(sealed) {
		return sealed, nil
	}
	if len(sealed) < Overhead || sealed[1] != version {
		return nil, &CorruptError{SID: s.sid, Kind: kind}
	}
	plain, err := s.bytes.Open(make([]byte, 0, len(sealed)-Overhead), nil, sealed[header:], s.place(kind, detail))
	if err != nil {
		return nil, &CorruptError{SID: s.sid, Kind: kind}
	}
	return plain, nil
}

// IsSealedText tells encrypted texts from plain ones.
func IsSealedText(t string) bool { return strings.HasPrefix(t, textMark) }

// SealText is Seal for columns of text.
func (s *Sealer) SealText(kind Kind, detail []byte, plain string) string {
	return textMark + base64.RawStdEncoding.EncodeToString(s.Seal(kind, detail, []byte(plain)))
}

// OpenText is Open for columns of text.
func (s *Sealer) OpenText(kind Kind, detail []byte, sealed string) (string, error) {
	encoded, ok := strings.CutPrefix(sealed, textMark)
	if !ok {
		return sealed, nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil || !IsSealed(raw) {
		return "", &CorruptError{SID: s.sid, Kind: kind}
	}
	plain, err := s.Open(kind, detail, raw)
	return string(plain), err
}

// SealHash encrypts a hash of 32 bytes, the same one to the same bytes: equal
// payloads of a session stay equal, so that every node and SQL itself can
// compare them, and nobody without the key can guess a short payload by its
// hash. Under a session's key no two hashes share their first half, so CBC
// without a nonce tells nothing else. Other lengths stay as they are.
func (s *Sealer) SealHash(h []byte) []byte {
	if len(h) != sha256.Size {
		return h
	}
	out := make([]byte, sha256.Size)
	cipher.NewCBCEncrypter(s.hashes, make([]byte, aes.BlockSize)).CryptBlocks(out, h) //nolint:gosec // no nonce, for the reason above
	return out
}

// OpenHash is the hash that SealHash encrypted.
func (s *Sealer) OpenHash(h []byte) []byte {
	if len(h) != sha256.Size {
		return h
	}
	out := make([]byte, sha256.Size)
	cipher.NewCBCDecrypter(s.hashes, make([]byte, aes.BlockSize)).CryptBlocks(out, h)
	return out
}

// Tag stands for bytes that are only looked up, such as a hash over a whole
// turn.
func (s *Sealer) Tag(b []byte) []byte {
	m := hmac.New(sha256.New, s.tags)
	_, _ = m.Write(b) // a hash takes everything
	return m.Sum(nil)
}

// shortHash is the bytes of a hash's beginning that SealShort takes.
const shortHash = 8

// SealShort encrypts the beginning of a hash, 16 hexadecimal digits, the same
// one to the same 32 digits. Other texts stay as they are.
func (s *Sealer) SealShort(digits string) string {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != shortHash {
		return digits
	}
	block := make([]byte, aes.BlockSize)
	copy(block, raw)
	s.hashes.Encrypt(block, block)
	return hex.EncodeToString(block)
}

// OpenShort is what SealShort encrypted.
func (s *Sealer) OpenShort(digits string) string {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != aes.BlockSize {
		return digits
	}
	s.hashes.Decrypt(raw, raw)
	if !bytes.Equal(raw[shortHash:], make([]byte, aes.BlockSize-shortHash)) {
		return digits
	}
	return hex.EncodeToString(raw[:shortHash])
}

func (s *Sealer) String() string { return fmt.Sprintf("the key of session %s", s.sid) }
