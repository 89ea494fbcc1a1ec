package message

import (
	"bytes"
	"errors"
	"sort"
	"unicode/utf8"
)

// ErrNotCuttable: the message is neither a tool result nor a note, or holds no
// text to shorten.
var ErrNotCuttable = errors.New("message: nothing to cut")

// MaxUncutCommand is how many bytes the command of a bashExecution may take for
// its output to be cut: the command stays whole. No token is less than a byte.
const MaxUncutCommand = 256

// CutResult returns a copy of a tool result whose visible text costs at most
// maxTokens, summed over its texts by est. The text is cut at a code point and
// ends
//
//	[engined: N of M characters shown; full text: event SEQ]
//
// N and M count code points. All else of the JSON stays as it is: ids, other
// members, their order, number text, images, and a text block's other members.
// Of several blocks those before the cut stay whole and those after it go.
// Where a message holds several results (Anthropic) the allowance is shared:
// small ones stay whole, the large ones get equal parts. Text of the user
// beside results is not counted and not touched. A note is cut in the same way:
// a bashExecution in its output, a summary of the host's in its text, a custom
// message in its content.
//
// A body that fits comes back as it is. The ending has a price of its own:
// with less than 64 tokens for each result the answer may be larger than
// maxTokens. The outcome depends on the arguments alone.
func CutResult(body []byte, seq int64, maxTokens int, est func(string) int) ([]byte, error) {
	return cutResult(body, seq, maxTokens, est, false)
}

func cutResult(body []byte, seq int64, maxTokens int, est func(string) int, keepEnd bool) ([]byte, error) {
	m, err := Read(body)
	if err != nil {
		return nil, err
	}
	if !m.Flags.Has(Cuttable) {
		return nil, ErrNotCuttable
	}
	results, total := costed(body, est)
	if total <= maxTokens {
		return body, nil
	}
	var edits []edit
	for i, part := range share(results, maxTokens) {
		if r := results[i]; r.cost > part {
			edits = append(edits, r.cut(seq, part, est, keepEnd)...)
		}
	}
	return splice(body, edits), nil
}

// CuttableCost is what the texts cost that CutResult may shorten, summed over
// them by est, and the number of results (or notes) that they belong to.
func CuttableCost(body []byte, est func(string) int) (tokens, parts int) {
	results, total := costed(body, est)
	return total, len(results)
}

// costed finds the texts and what each costs.
func costed(body []byte, est func(string) int) (results []*resultText, total int) {
	results = findResults(body)
	for _, r := range results {
		for i := range r.pieces {
			p := &r.pieces[i]
			p.cost = est(p.text())
			if i > 0 {
				p.cost++ // the line break between two texts
			}
			r.cost += p.cost
		}
		total += r.cost
	}
	return results, total
}

// share divides an allowance so that what needs less than an equal part gets
// all it needs and the others divide the rest.
func share(results []*resultText, allowance int) []int {
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return results[order[i]].cost < results[order[j]].cost })
	parts := make([]int, len(results))
	for n, i := range order {
		part := max(allowance, 0) / (len(order) - n)
		parts[i] = min(part, results[i].cost)
		allowance -= parts[i]
	}
	return parts
}

// cut shortens one result to allowance tokens.
func (r *resultText) cut(seq int64, allowance int, est func(string) int, keepEnd bool) []edit {
	chars := 0
	for i := range r.pieces {
		chars += r.pieces[i].chars()
	}
	ending := ending(seq, chars)
	if keepEnd && len(r.pieces) == 1 && !r.pieces[0].opaque {
		return []edit{r.pieces[0].shortenMiddle(allowance, ending, est)}
	}
	// Whole pieces first, as long as the ending still fits behind them.
	shown, at := 0, 0
	for reserve := est("\n" + ending(chars)); at < len(r.pieces)-1; at++ {
		p := &r.pieces[at]
		if p.cost > allowance-reserve {
			break
		}
		allowance -= p.cost
		shown += p.chars()
	}
	if at > 0 {
		allowance--
	}
	var edits []edit
	p := &r.pieces[at]
	if p.opaque {
		edits = append(edits, edit{p.block, p.standIn(ending(shown))})
	} else {
		edits = append(edits, p.shorten(allowance, shown, ending, est))
	}
	for i := at + 1; i < len(r.pieces); i++ {
		edits = append(edits, edit{r.pieces[i].block, nil})
	}
	return edits
}

// shorten cuts the inside of one text so that with its ending it costs at most
// allowance.
func (p *piece) shorten(allowance, before int, ending func(int) string, est func(string) int) edit {
	text := p.text()
	fits := func(n int) bool {
		shown := before + utf8.RuneCountInString(text[:n])
		return est(text[:n]+"\n"+ending(shown)) <= allowance
	}
	// Grow before halving, so that the work follows the allowance and not the
	// size of the text. low always fits, but for 0, which must do.
	low, high := 0, floorRune(text, 256)
	for high < len(text) && fits(high) {
		low, high = high, floorRune(text, 2*high)
	}
	for low < high {
		mid := floorRune(text, (low+high+1)/2)
		if mid == low {
			// Within one code point of low.
			mid = high
		}
		if fits(mid) {
			low = mid
		} else if high = floorRune(text, mid-1); high < low {
			high = low
		}
	}
	runes := utf8.RuneCountInString(text[:low])
	out := append([]byte{'"'}, p.raw[:rawOffset(p.raw, runes)]...)
	if low > 0 {
		out = append(out, '\\', 'n')
	}
	out = append(out, ending(before+runes)...)
	return edit{p.literal, append(out, '"')}
}

// floorRune is the last start of a code point in s at or before n.
func floorRune(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// rawOffset is where the n-th code point starts in the raw inside of a string.
func rawOffset(raw []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(raw); n-- {
		_, size := codePoint(raw[i:])
		i += size
	}
	return i
}

// edit replaces a range of the body; without bytes the range is an array's
// element and goes with one of its commas.
type edit struct {
	at    bounds
	bytes []byte
}

func splice(body []byte, edits []edit) []byte {
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].at.from < edits[j].at.from })
	out := make([]byte, 0, len(body))
	from := 0
	for _, e := range edits {
		to := e.at.to
		if e.bytes == nil {
			// A dropped block is never the first of its array, for the shortened
			// one stands before it: the comma before it goes with it.
			keep := bytes.TrimRight(body[from:e.at.from], " \t\r\n")
			keep = bytes.TrimSuffix(keep, []byte(","))
			out = append(out, keep...)
			from = to
			continue
		}
		out = append(out, body[from:e.at.from]...)
		out = append(out, e.bytes...)
		from = to
	}
	return append(out, body[from:]...)
}
