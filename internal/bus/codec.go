package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bounds of a message. A full one is under 2 KiB even when every byte of the
// tenant is escaped.
const (
	// MaxMessageBytes is the largest encoded message.
	MaxMessageBytes = 4 << 10
	// MaxTenantBytes is the longest tenant name, in bytes of UTF-8.
	MaxTenantBytes = 256

	version = 1
)

// Job says that a session owes a compaction planned in an epoch.
type Job struct {
	Tenant string
	// SID is the session's id, a UUID in canonical form.
	SID   string
	Epoch int64
	// Attempt numbers deliberate re-sends of the same debt, from 0.
	Attempt int
}

// NoticeType is the kind of event a notice tells of; it is a subject token.
type NoticeType string

// The notices there are.
const (
	TurnCompleted NoticeType = "turn_completed"
	EpochRotated  NoticeType = "epoch_rotated"
	// CompactionStarting and CompactionFinished frame a compaction, however it
	// ends; Seq is the head. They stand for no event and are not repeated.
	CompactionStarting NoticeType = "compaction_starting"
	CompactionFinished NoticeType = "compaction_finished"
)

func (t NoticeType) known() bool {
	switch t {
	case TurnCompleted, EpochRotated, CompactionStarting, CompactionFinished:
		return true
	}
	return false
}

// Notice says that the event Seq of a session exists.
type Notice struct {
	Type   NoticeType
	Tenant string
	// SID is the session's id, a UUID in canonical form.
	SID   string
	Seq   int64
	Epoch int64
}

type wireJob struct {
	V       int    `json:"v"`
	Tenant  string `json:"tenant"`
	SID     string `json:"sid"`
	Epoch   int64  `json:"epoch"`
	Attempt int    `json:"attempt"`
}

type wireNotice struct {
	V      int        `json:"v"`
	Type   NoticeType `json:"type"`
	Tenant string     `json:"tenant"`
	SID    string     `json:"sid"`
	Seq    int64      `json:"seq"`
	Epoch  int64      `json:"epoch"`
}

func (j Job) validate() error {
	if err := validateIDs(j.Tenant, j.SID); err != nil {
		return err
	}
	if j.Epoch < 0 || j.Attempt < 0 {
		return fmt.Errorf("%w: negative epoch or attempt", ErrMalformed)
	}
	return nil
}

func (n Notice) validate() error {
	if !n.Type.known() {
		return fmt.Errorf("%w: unknown notice type", ErrMalformed)
	}
	if err := validateIDs(n.Tenant, n.SID); err != nil {
		return err
	}
	if n.Seq < 1 || n.Epoch < 0 {
		return fmt.Errorf("%w: seq below 1 or negative epoch", ErrMalformed)
	}
	return nil
}

func validateIDs(tenant, sid string) error {
	if tenant == "" || len(tenant) > MaxTenantBytes || !utf8.ValidString(tenant) {
		return fmt.Errorf("%w: tenant must be 1 to %d bytes of UTF-8", ErrMalformed, MaxTenantBytes)
	}
	// Parse takes other spellings too; ids are compared as strings.
	if id, err := uuid.Parse(sid); err != nil || id.String() != sid {
		return fmt.Errorf("%w: sid is not a canonical UUID", ErrMalformed)
	}
	return nil
}

func encodeJob(j Job) ([]byte, error) {
	if err := j.validate(); err != nil {
		return nil, err
	}
	return json.Marshal(wireJob{V: version, Tenant: j.Tenant, SID: j.SID, Epoch: j.Epoch, Attempt: j.Attempt})
}

func decodeJob(data []byte) (Job, error) {
	var w wireJob
	if err := decodeStrict(data, &w); err != nil {
		return Job{}, err
	}
	j := Job{Tenant: w.Tenant, SID: w.SID, Epoch: w.Epoch, Attempt: w.Attempt}
	return j, j.validate()
}

func encodeNotice(n Notice) ([]byte, error) {
	if err := n.validate(); err != nil {
		return nil, err
	}
	return json.Marshal(wireNotice{V: version, Type: n.Type, Tenant: n.Tenant, SID: n.SID, Seq: n.Seq, Epoch: n.Epoch})
}

func decodeNotice(data []byte) (Notice, error) {
	var w wireNotice
	if err := decodeStrict(data, &w); err != nil {
		return Notice{}, err
	}
	n := Notice{Type: w.Type, Tenant: w.Tenant, SID: w.SID, Seq: w.Seq, Epoch: w.Epoch}
	return n, n.validate()
}

// decodeStrict reads one JSON object of this version into w and refuses
// unknown fields and anything after it. Errors never quote the input: a
// stranger may have published content.
func decodeStrict(data []byte, w any) error {
	if len(data) > MaxMessageBytes {
		return fmt.Errorf("%w: %d bytes", ErrMalformed, len(data))
	}
	// The version comes first, since a newer one may have any fields.
	var head struct {
		V *int `json:"v"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.V == nil {
		return fmt.Errorf("%w: not an object with a version", ErrMalformed)
	}
	switch {
	case *head.V > version:
		return fmt.Errorf("%w: %d", ErrVersion, *head.V)
	case *head.V < version:
		return fmt.Errorf("%w: version %d", ErrMalformed, *head.V)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(w); err != nil {
		return fmt.Errorf("%w: fields do not match version %d", ErrMalformed, version)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: trailing bytes", ErrMalformed)
	}
	return nil
}
