package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"

	"github.com/engined/engined/contextengine"
)

// textMembers are the strings that are compared or kept. encoding/json turns
// every lone surrogate into U+FFFD, so that two different ones would become the
// same key; they are refused instead.
var textMembers = []string{
	"sessionId", "gatewayId", "nextSessionId", "idempotencyKey", "idempotencyKeys", "advancementKey", "reason",
	"newSessionKey", "childSessionKey", "childSessionId",
}

// checkText refuses an object, which is valid JSON, whose text members hold a
// lone surrogate.
func checkText(object []byte) error {
	if !mayHoldSurrogate(object) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return decodeProblem(err)
	}
	for _, field := range textMembers {
		for name, value := range members {
			// As encoding/json does, names are matched without regard to case.
			if strings.EqualFold(name, field) && loneSurrogate(value) {
				return &contextengine.InvalidError{Field: field, Reason: "holds half of a surrogate pair, which is no text"}
			}
		}
	}
	return nil
}

func mayHoldSurrogate(b []byte) bool {
	return bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`))
}

// loneSurrogate looks at the escapes of valid JSON.
func loneSurrogate(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if i++; b[i] != 'u' {
			continue
		}
		r := escapedRune(b[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		rest := b[i+1:]
		if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' || utf16.DecodeRune(r, escapedRune(rest[2:])) == '\ufffd' {
			return true
		}
		i += 6
	}
	return false
}

// escapedRune reads the four digits of an escape.
func escapedRune(b []byte) (r rune) {
	for _, d := range b[:4] {
		switch {
		case d <= '9':
			r = r<<4 | rune(d-'0')
		default:
			r = r<<4 | rune(d|0x20-'a'+10)
		}
	}
	return r
}
