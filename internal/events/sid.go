package events

import (
	"encoding/hex"
	"fmt"
)

// SID is the id of one life of a session, a UUID. The zero value is none.
type SID [16]byte

// MarshalText writes the usual form of a UUID.
func (s SID) MarshalText() ([]byte, error) {
	out := make([]byte, 0, 36)
	for i, part := range [][]byte{s[:4], s[4:6], s[6:8], s[8:10], s[10:]} {
		if i > 0 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, part)
	}
	return out, nil
}

// UnmarshalText reads what MarshalText wrote.
func (s *SID) UnmarshalText(text []byte) error {
	digits := make([]byte, 0, 32)
	for _, c := range text {
		if c != '-' {
			digits = append(digits, c)
		}
	}
	if len(digits) != 32 {
		return fmt.Errorf("sid %q: not a UUID", text)
	}
	if _, err := hex.Decode(s[:], digits); err != nil {
		return fmt.Errorf("sid %q: %w", text, err)
	}
	return nil
}
