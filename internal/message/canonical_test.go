package message_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{ "b" : 1 , "a" : [ 1.0 , 1e2, -0 ] }`:   `{"a":[1.0,1e2,-0],"b":1}`,
		`{"\u0062":1,"a":2}`:                      `{"a":2,"b":1}`,
		`{"a":2,"b":1,"a":1}`:                     `{"a":2,"a":1,"b":1}`,
		`{"a":"\u0041\/\ud83d\ude00\u00e9é"}`:     `{"a":"A/😀éé"}`,
		`{"a":"\uD800x\uDFFF","b":"\u0000\n\b"}`:  `{"a":"\ud800x\udfff","b":"\u0000\u000a\u0008"}`,
		`{"a":"\"\\","ab":{"d":1,"c":{}},"A":[]}`: `{"A":[],"a":"\"\\","ab":{"c":{},"d":1}}`,
		`{"a":`: `{"a":`,
	} {
		if got := string(message.Canonical([]byte("> "), []byte(body))); got != "> "+want {
			t.Errorf("Canonical(%s) = %s, want %s", body, got, want)
		}
	}
}

func TestHashTellsHeartbeats(t *testing.T) {
	t.Parallel()
	body := []byte(`{"role":"user"}`)
	if message.Hash(body, true) == message.Hash(body, false) {
		t.Error("the heartbeat flag does not change the hash")
	}
}

// value is JSON that can be spelled in many ways: object members as pairs,
// strings as UTF-16 code units.
type (
	object []field
	field  struct {
		name  []uint16
		value any
	}
)

func genValue(depth int) *rapid.Generator[any] {
	unit := rapid.OneOf(rapid.Uint16Range('a', 'c'), rapid.Uint16(), rapid.Uint16Range(0xD7FE, 0xE001), rapid.Uint16Range(0, 0x7f))
	str := rapid.SliceOfN(unit, 0, 6)
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return str.Draw(t, "string")
		case 1:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case 2:
			return rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "12345678901234567890"}).Draw(t, "number")
		case 3:
			return rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "array")
		}
		return genObject(depth-1).Draw(t, "object")
	})
}

func genObject(depth int) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		var o object
		seen := map[string]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SliceOfN(rapid.Uint16Range('a', 'd'), 0, 3).Draw(t, "name")
			if k := fmt.Sprint(name); !seen[k] {
				seen[k] = true
				o = append(o, field{name, genValue(depth).Draw(t, "value")})
			}
		}
		return o
	})
}

// spell writes a value with random blanks, escapes and order of members.
func spell(r *rand.Rand, v any) string {
	blank := func() string { return []string{"", "", " ", "\n\t", "\r"}[r.IntN(5)] }
	switch v := v.(type) {
	case string:
		return v
	case []uint16:
		return spellString(r, v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = blank() + spell(r, v[i]) + blank()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case object:
		parts := make([]string, len(v))
		for i, at := range r.Perm(len(v)) {
			parts[i] = blank() + spellString(r, v[at].name) + blank() + ":" + blank() + spell(r, v[at].value) + blank()
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	panic(fmt.Sprintf("no JSON: %T", v))
}

func spellString(r *rand.Rand, units []uint16) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		u := units[i]
		if utf16.IsSurrogate(rune(u)) {
			if i+1 < len(units) && r.IntN(2) == 0 {
				if pair := utf16.DecodeRune(rune(u), rune(units[i+1])); pair != 0xFFFD {
					b.WriteRune(pair)
					i++
					continue
				}
			}
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], u)
			continue
		}
		switch short := strings.IndexByte("\b\f\n\r\t\"\\/", byte(u)); {
		case u < 0x80 && short >= 0 && r.IntN(2) == 0:
			b.WriteString(`\` + `bfnrt"\/`[short:short+1])
		case u < 0x20, u == '"', u == '\\', r.IntN(3) == 0:
			fmt.Fprintf(&b, `\u%04x`, u)
		default:
			b.WriteRune(rune(u))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func TestHashFollowsMeaningOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := genObject(3).Draw(t, "value")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		one, two := spell(r, v), spell(r, v)
		if !json.Valid([]byte(one)) {
			t.Fatalf("the test spells no JSON: %s", one)
		}
		if message.Hash([]byte(one), false) != message.Hash([]byte(two), false) {
			t.Fatalf("hashes differ:\n%s\n%s\n%s\n%s", one, two, message.Canonical(nil, []byte(one)), message.Canonical(nil, []byte(two)))
		}
		other := genObject(3).Draw(t, "other")
		same := spell(rand.New(rand.NewPCG(1, 1)), sorted(v)) == spell(rand.New(rand.NewPCG(1, 1)), sorted(other))
		if got := message.Hash([]byte(one), false) == message.Hash([]byte(spell(r, other)), false); got != same {
			t.Fatalf("equal hashes: %v, equal values: %v\n%s\n%s", got, same, one, spell(r, other))
		}
	})
}

// sorted orders members, so that two equal values are spelled alike by equal
// random sources.
func sorted(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = sorted(v[i])
		}
		return out
	case object:
		out := make(object, 0, len(v))
		for _, f := range v {
			at := 0
			for at < len(out) && fmt.Sprint(out[at].name) < fmt.Sprint(f.name) {
				at++
			}
			out = append(out[:at], append(object{{f.name, sorted(f.value)}}, out[at:]...)...)
		}
		return out
	}
	return v
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":"\ud83d\ude00"}`, `{"a":{"d":[],"c":"\u0000"},"a":2}`, `{"a":"\ud800\udc00\udc00"}`, `[`, `{"":"\/"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := message.Canonical(nil, body)
		if message.Check(body, message.Limits{}) != nil {
			return
		}
		if err := message.Check(c, message.Limits{Bytes: 6*len(body) + 10}); err != nil {
			t.Fatalf("Canonical(%q) = %q: %v", body, c, err)
		}
		if again := message.Canonical(nil, c); string(again) != string(c) {
			t.Fatalf("not stable: %q, then %q", c, again)
		}
		one, err1 := message.Read(body)
		two, err2 := message.Read(c)
		if err1 != nil || err2 != nil || one.Role != two.Role || one.Flags != two.Flags || one.Dialect != two.Dialect {
			t.Fatalf("%q reads as %+v, its canonical form as %+v", body, one, two)
		}
	})
}

func TestHashTellsNearMissesApart(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{}
	for _, body := range []string{
		`{}`, `{"a":1}`, `{"a":1.0}`, `{"a":"1"}`, `{"a":[1]}`, `{"a":[[1]]}`, `{"a":null}`, `{"b":1}`, `{"a":1,"a":1}`,
		`{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":[12]}`, `{"a":{"b":1}}`, `{"a":{},"b":1}`,
		`{"a":"\u0000"}`, `{"a":""}`, `{"a":" "}`, `{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\\ud800"}`, `{"a":"\ufffd"}`,
		`{"a":"\ud800\udc00"}`, `{"a":"\udc00\ud800"}`, `{"a":"\",\"b\":\""}`, `{"a":"","b":""}`, `{"a":"A"}`, `{"a":"a"}`,
	} {
		h := message.Hash([]byte(body), false)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", body, other)
		}
		seen[h] = body
	}
}
