package transcripts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ending is how a cut text ends.
var ending = regexp.MustCompile(`(?:^|\n)\[engined: (\d+) of (\d+) characters shown; full text: event (\d+)\]$`)

// onlyCut reports an error unless shown is the stored message with nothing but
// texts of its content (or output, or summary) shortened, each to a beginning of itself.
func onlyCut(stored, shown json.RawMessage, seq int64) error {
	var a, b map[string]any
	for _, x := range []struct {
		raw  json.RawMessage
		into *map[string]any
	}{{stored, &a}, {shown, &b}} {
		d := json.NewDecoder(bytes.NewReader(x.raw))
		d.UseNumber()
		if err := d.Decode(x.into); err != nil {
			return err
		}
	}
	// A command that the host ran has its text elsewhere.
	member := "content"
	switch a["role"] {
	case "bashExecution":
		member = "output"
	case "branchSummary", "compactionSummary":
		member = "summary"
	}
	c := cutting{seq: seq}
	if err := c.same(a[member], b[member]); err != nil {
		return err
	}
	if c.cuts == 0 {
		return fmt.Errorf("event %d is shown with other bytes and not cut", seq)
	}
	delete(a, member)
	delete(b, member)
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("event %d is shown with other members", seq)
	}
	return nil
}

type cutting struct {
	seq  int64
	cuts int
}

func (c *cutting) same(stored, shown any) error {
	switch a := stored.(type) {
	case string:
		b, ok := shown.(string)
		if !ok {
			return fmt.Errorf("event %d: a text became %T", c.seq, shown)
		}
		return c.text(a, b)
	case []any:
		b, ok := shown.([]any)
		if !ok || len(b) > len(a) {
			return fmt.Errorf("event %d: a list became %T", c.seq, shown)
		}
		before := c.cuts
		for i := range b {
			if err := c.same(a[i], b[i]); err != nil {
				return err
			}
		}
		if len(b) < len(a) && c.cuts == before {
			return fmt.Errorf("event %d: blocks are missing and none is cut", c.seq)
		}
		return nil
	case map[string]any:
		b, ok := shown.(map[string]any)
		if !ok || len(a) != len(b) {
			return fmt.Errorf("event %d: a block became another", c.seq)
		}
		for k := range a {
			if err := c.same(a[k], b[k]); err != nil {
				return err
			}
		}
		return nil
	}
	if !reflect.DeepEqual(stored, shown) {
		return fmt.Errorf("event %d: %v became %v", c.seq, stored, shown)
	}
	return nil
}

func (c *cutting) text(stored, shown string) error {
	if stored == shown {
		return nil
	}
	at := ending.FindStringSubmatchIndex(shown)
	if at == nil {
		return fmt.Errorf("event %d: a text differs and has no mark", c.seq)
	}
	num := func(group int) int {
		n, err := strconv.Atoi(shown[at[2*group]:at[2*group+1]])
		if err != nil {
			return -1
		}
		return n
	}
	kept := shown[:at[0]]
	chars, all := utf8.RuneCountInString(kept), utf8.RuneCountInString(stored)
	if !strings.HasPrefix(stored, kept) {
		return fmt.Errorf("event %d: what is kept is no beginning of the text", c.seq)
	}
	// Texts in front of this one count too, so the mark may say more.
	if n, of := num(1), num(2); n < chars || of < all || of-n < all-chars {
		return fmt.Errorf("event %d: %d of %d characters are shown, the mark says %d of %d", c.seq, chars, all, n, of)
	}
	if int64(num(3)) != c.seq {
		return fmt.Errorf("event %d: the mark names event %d", c.seq, num(3))
	}
	c.cuts++
	return nil
}
