package message

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func hasEscape(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// unquote decodes the inside of a valid JSON string. What is no Unicode text
// (lone surrogates, broken UTF-8) becomes U+FFFD.
func unquote(raw []byte) string {
	if !hasEscape(raw) {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 {
			n = len(raw) - i
		}
		if n > 0 {
			b.Write(bytes.ToValidUTF8(raw[i:i+n], []byte("\uFFFD")))
			i += n
			continue
		}
		r, size := codePoint(raw[i:])
		if utf16.IsSurrogate(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

// codePoint decodes the first code point inside a valid JSON string, escaped
// or not, and tells how many bytes spell it. A pair of surrogate escapes is
// one code point; a lone surrogate is returned as itself.
func codePoint(raw []byte) (rune, int) {
	if raw[0] != '\\' {
		return utf8.DecodeRune(raw)
	}
	switch raw[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		u, _ := hex4(raw[2:6])
		r := rune(u)
		if 0xD800 <= r && r < 0xDC00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if low, ok := hex4(raw[8:12]); ok {
				if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return r, 6
	}
	return rune(raw[1]), 2 // \" \\ \/
}
