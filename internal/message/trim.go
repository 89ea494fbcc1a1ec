package message

import (
	"fmt"
	"unicode/utf8"
)

// TrimResult is CutResult with the end of the text kept too: of each result that
// is too large it leaves out the middle, and
//
//	[engined: N of M characters shown; full text: event SEQ]
//
// stands there on a line of its own. Head and tail get equal parts. A result of
// several texts keeps its head alone, as CutResult has it.
func TrimResult(body []byte, seq int64, maxTokens int, est func(string) int) ([]byte, error) {
	return cutResult(body, seq, maxTokens, est, true)
}

// shortenMiddle cuts the middle out of a text so that with the mark it costs at
// most allowance.
func (p *piece) shortenMiddle(allowance int, mark func(shown int) string, est func(string) int) edit {
	text := p.text()
	parts := func(n int) (head, tail string) {
		head = text[:floorRune(text, n)]
		from := len(text) - n
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		return head, text[from:]
	}
	write := func(n int) string {
		head, tail := parts(n)
		return head + "\n" + mark(utf8.RuneCountInString(head)+utf8.RuneCountInString(tail)) + "\n" + tail
	}
	// As shorten does: grow before halving. Parts never overlap.
	low, high, most := 0, 128, len(text)/2
	for high < most && est(write(high)) <= allowance {
		low, high = high, 2*high
	}
	for high = min(high, most); low < high; {
		mid := (low + high + 1) / 2
		if est(write(mid)) <= allowance {
			low = mid
		} else {
			high = mid - 1
		}
	}
	head, tail := parts(low)
	h, t := utf8.RuneCountInString(head), utf8.RuneCountInString(tail)
	out := append([]byte{'"'}, p.raw[:rawOffset(p.raw, h)]...)
	if h > 0 {
		out = append(out, '\\', 'n')
	}
	out = append(out, mark(h+t)...)
	if t > 0 {
		out = append(out, '\\', 'n')
		out = append(out, p.raw[rawOffset(p.raw, p.chars()-t):]...)
	}
	return edit{p.literal, append(out, '"')}
}

func ending(seq int64, chars int) func(shown int) string {
	return func(shown int) string {
		return fmt.Sprintf("[engined: %d of %d characters shown; full text: event %d]", shown, chars, seq)
	}
}
