package search

import (
	"strings"
	"unicode/utf8"
)

// Sizes of the parts in which a long text is indexed.
const (
	// PartBytes is the most bytes of a part.
	PartBytes = 8 << 10
	// OverlapBytes is how much of its end a part shares with the next one, so
	// that what stands at an edge is whole in one of them.
	OverlapBytes = 256
)

// Parts cuts a text for the index. A part ends at a line, else at a blank,
// else at a character.
func Parts(text string) []string {
	text = Clean(text)
	var out []string
	for len(text) > PartBytes {
		end := cut(text)
		out = append(out, text[:end])
		from := end - OverlapBytes
		for !utf8.RuneStart(text[from]) {
			from--
		}
		text = text[from:]
	}
	if len(out) == 0 && strings.TrimSpace(text) == "" {
		return nil
	}
	return append(out, text)
}

// cut is where a part ends: in the last quarter, where that is possible.
func cut(text string) int {
	least := PartBytes * 3 / 4
	head := text[least:PartBytes]
	if i := strings.LastIndexByte(head, '\n'); i >= 0 {
		return least + i + 1
	}
	if i := strings.LastIndexByte(head, ' '); i >= 0 {
		return least + i + 1
	}
	end := PartBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// Clean makes a text that every database takes: no NUL, nothing but UTF-8.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\ufffd")
	}
	return text
}
