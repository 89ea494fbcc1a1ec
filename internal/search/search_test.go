package search_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/search"
)

// found tells whether a text holds a whole query, by the index and on the text;
// the two must agree.
func found(t testing.TB, query, text string) bool {
	t.Helper()
	q, err := search.Parse(query)
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	terms, _ := search.Terms(text)
	places := search.NewMatcher(q.Units).Find(text, 1)
	for i, u := range q.Units {
		exact := len(places[i]) > 0
		indexed := true
		for _, l := range u.Lookups() {
			has := false
			for _, term := range terms {
				has = has || term.Text == l.Term || l.Prefix && strings.HasPrefix(term.Text, l.Term)
			}
			indexed = indexed && has
		}
		if exact && !indexed {
			t.Errorf("%q is in %.80q, but the index does not lead there: %+v", u.Raw, text, u.Lookups())
		}
		if !exact {
			return false
		}
	}
	return true
}

func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text      string
		yes, none []string
	}{
		{
			"Run chat-send with --dry-run, then rm -rf /tmp/x; grep 'a|b' file",
			[]string{"chat-send", "chat", "send", "-rf", "rm -rf", "a|b", "--dry-run", "/tmp/x", "grep", `"rm -rf"`, `"grep 'a|b'"`, "'a|b'", "|"},
			[]string{"chatsend", "chat_send", "b|a", "-r", `"rf rm"`, "en", "f", "-dry-ru"},
		},
		{
			"see 38.101 and v1.2.3 in /etc/hosts, mail a@b.example or jo.doe+x@mail.example.com",
			[]string{"38.101", "v1.2.3", "1.2.3", "/etc/hosts", "hosts", "a@b", "a@b.example", "jo.doe+x@mail.example.com", "V1.2.3"},
			[]string{"8.101", "38.10", "38.1012", "v1.2.4", "/etc/host"},
		},
		{
			"getUserName calls parse_http_request in HTTPServer, sha256 of utf8mb4",
			[]string{"getUserName", "getusername", "user", "name", "parse_http_request", "http", "server", "HTTPServer", "sha256", "sha", "get*", "parse_*", "Serv*", "utf8*"},
			[]string{"getUser", "username", "parsehttp", "erver", "ser"},
		},
		{
			"今日は静默が大事です。播客 and 飞书, 한국어 검색, ｶﾞﾗｽ",
			[]string{"静默", "静", "播客", "飞书", "今日", "大事", "한국어", "검색", "국", "ガラス", "ｶﾞﾗｽ", "ガ", `"静默が"`},
			[]string{"默静", "客播", "日静", "한어"},
		},
		{
			"ship it 🔥🔥 now 👨‍👩‍👧 and 👍🏽 café naïve Straße ΑΘΗΝΑ Ёлка don’t ﬁle",
			[]string{"🔥", "🔥🔥", "👨‍👩‍👧", "👍🏽", "👍", "cafe", "CAFÉ", "naive", "STRASSE", "αθηνα", "елка", "don't", "file"},
			[]string{"🔥🔥🔥", "🚀", "caf"},
		},
		{
			"The exact phrase here, and x:=y; C++ and C#; 100% of $5; a ≠ b → c",
			[]string{`"exact phrase"`, `"exact phrase`, `x:=y`, "C++", "C#", "100%", "$5", "≠", "→", `"exact   phrase"`, "phrase exact", `""  exact`, "++"},
			[]string{`"phrase exact"`, `"exact here"`, "C--", "200%", `"exact phrases"`},
		},
		{
			"say \"hello world\" and **bold** and f(*args)",
			[]string{`hello "world"`, `"hello world"`, "**bold**", "*args", "f(*args)"},
			[]string{"bold*d"},
		},
		{"กรุงเทพมหานคร ภาษาไทย", []string{"กรุงเทพ", "ไทย"}, []string{"ทยไ"}},
		{"हिन्दी में खोज", []string{"हिन्दी", "खोज"}, []string{"हिन्द"}},
		{"e\u0301te\u0301 Zo\u00eb", []string{"été", "ete", "Zoe"}, nil},
		{"nul\x00byte and \xff\xfe bad", []string{"nul", "byte", "bad"}, nil},
	} {
		for _, q := range tc.yes {
			if !found(t, q, tc.text) {
				t.Errorf("%q is not found in %q", q, tc.text)
			}
		}
		for _, q := range tc.none {
			if found(t, q, tc.text) {
				t.Errorf("%q is found in %q", q, tc.text)
			}
		}
	}
}

func TestQueriesThatAskNothing(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]error{
		"": search.ErrEmptyQuery, "  \t\n": search.ErrEmptyQuery, `""`: search.ErrEmptyQuery, `" "`: search.ErrEmptyQuery, "\x00": search.ErrEmptyQuery,
		"\u200b": search.ErrEmptyQuery, "a\xff": search.ErrNotUTF8, strings.Repeat("a", 4097): search.ErrLongQuery,
		strings.Repeat("1 ", 3) + many(80): search.ErrManyUnits,
	} {
		if _, err := search.Parse(q); err != want { //nolint:errorlint // Parse returns the sentinels themselves
			t.Errorf("%.20q: %v, want %v", q, err, want)
		}
	}
	if q, err := search.Parse("a a A \"a\" á"); err != nil || len(q.Units) != 1 {
		t.Errorf("one word, five times: %+v %v", q, err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" w" + strings.Repeat("x", i))
	}
	return b.String()
}

// texts draws from what words, scripts, signs and broken bytes are made of.
func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "B", "foo", "fooBar", "HTTPx", "v1", "2", " ", "\n", "-", "_", ".", "/", "@", "|", "*", "'", "’", "静", "默", "カ", "ﾞ", "한", "ก", "ั",
		"🔥", "👍🏽", "\u200d", "\ufe0f", "e\u0301", "ß", "İ", "ﬁ", "Ⅷ", "①", "\u00a0", "\x00", "\xff", "\u00ad", "ा", "न", "\u1160", "\u3099", "㌔", "½", "ª",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(t, "pieces"), "")
	})
}

// Whatever is cut out of a text at the edges of its atoms is found in it.
func TestEveryPieceOfATextIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := texts().Draw(rt, "text")
		atoms := search.Atoms(text)
		if len(atoms) == 0 {
			return
		}
		from := rapid.IntRange(0, len(atoms)-1).Draw(rt, "from")
		to := rapid.IntRange(from, min(len(atoms)-1, from+8)).Draw(rt, "to")
		if from > 0 && atoms[from-1].To > atoms[from].From || to+1 < len(atoms) && atoms[to+1].From < atoms[to].To {
			return // one character that folds into several atoms
		}
		q := text[atoms[from].From:atoms[to].To]
		if !utf8.ValidString(q) {
			return
		}
		if !found(t, q, text) && !strings.Contains(q, `"`) {
			rt.Fatalf("%q is not found in %q", q, text)
		}
	})
}

func TestFoldingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(texts(), rapid.String()).Draw(rt, "s")
		if once := search.Fold(s); search.Fold(once) != once {
			rt.Fatalf("%q folds to %q, that to %q", s, once, search.Fold(once))
		}
	})
}

func TestPartsHoldTheWholeText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		unit := rapid.SampledFrom([]string{"word ", "x", "静", "a\n", "🔥 ", "\xff", "long-identifier_", "\x00"}).Draw(rt, "unit")
		text := strings.Repeat(unit, rapid.IntRange(0, 30_000).Draw(rt, "n"))
		parts := search.Parts(text)
		rest := search.Clean(text)
		for i, p := range parts {
			if len(p) > search.PartBytes || !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
				rt.Fatalf("part %d has %d bytes, or is no text", i, len(p))
			}
			if !strings.HasPrefix(rest, p) {
				rt.Fatalf("part %d is not where it should be", i)
			}
			if i == len(parts)-1 {
				rest = rest[len(p):]
				break
			}
			next := len(p) - search.OverlapBytes
			for !utf8.RuneStart(rest[next]) {
				next--
			}
			rest = rest[next:]
		}
		if strings.TrimSpace(rest) != "" {
			rt.Fatalf("%d bytes are in no part", len(rest))
		}
	})
}

func TestSnippetsHoldWhatWasFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.ToValidUTF8(texts().Draw(rt, "before")+strings.Repeat(" filler", rapid.IntRange(0, 90).Draw(rt, "gap"))+
			texts().Draw(rt, "after"), "?")
		atoms := search.Atoms(text)
		if len(atoms) == 0 {
			return
		}
		a := atoms[rapid.IntRange(0, len(atoms)-1).Draw(rt, "atom")]
		s := search.Cut(text, []search.Span{{From: a.From, To: a.To}})
		if len(s.Marks) != 1 || s.Text[s.Marks[0].From:s.Marks[0].To] != text[a.From:a.To] {
			rt.Fatalf("%q is not marked in %+v", text[a.From:a.To], s)
		}
		if n := utf8.RuneCountInString(s.Text); n > search.SnippetRunes+2 {
			rt.Fatalf("the snippet has %d characters", n)
		}
	})
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("lorem ipsum ", 40) + "the needle is here" + strings.Repeat(" dolor sit", 40)
	at := strings.Index(text, "needle")
	s := search.Cut(text, []search.Span{{From: at, To: at + 6}})
	if !strings.HasPrefix(s.Text, "…") || !strings.HasSuffix(s.Text, "…") || !strings.Contains(s.Text, "the needle is here") {
		t.Errorf("snippet %q", s.Text)
	}
	long := strings.Repeat("x", 1000)
	if s := search.Cut("a "+long+" b", []search.Span{{From: 2, To: 1002}}); !strings.Contains(s.Text, long) {
		t.Error("a long match was cut")
	}
	if s := search.Cut("a b a", []search.Span{{From: 4, To: 5}, {From: 0, To: 1}, {From: 0, To: 3}}); len(s.Marks) != 2 {
		t.Errorf("marks %+v", s.Marks)
	}
}

func TestFormsShareAStem(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][]string{
		"running": {"run", "runs"}, "pets": {"pet"}, "adopted": {"adopt", "adopting", "adoption"}, "studies": {"study", "studied", "studying"},
		"日": nil, "go": nil,
	} {
		got := search.Forms(word)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q has the forms %v, not %q", word, got, w)
			}
		}
		for _, f := range got {
			if search.Stem(f) != search.Stem(word) {
				t.Errorf("%q is no form of %q", f, word)
			}
		}
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	q, err := search.Parse("When did Caroline adopt the dogs, the dog?")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range search.Wants(q) {
		got = append(got, w.Forms[0].Raw)
	}
	if diff := cmp.Diff([]string{"caroline", "adopt", "dogs"}, got); diff != "" {
		t.Error(diff)
	}
	if q, _ = search.Parse("who are you"); len(search.Wants(q)) != 3 {
		t.Error("a question of grammar alone asks for its words")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a "b c" d*`, `"`, `""`, "-rf", "a|b", "\x00", "\xff", "静默 🔥", `\'"*`, "ｶﾞ*", "a\u200db"} {
		f.Add(s, "a b c d -rf 静默 🔥")
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, err := search.Parse(query)
		if err != nil {
			return
		}
		for i, places := range search.NewMatcher(q.Units).Find(text, 10) {
			if u := q.Units[i]; len(u.Lookups()) == 0 {
				t.Fatalf("%q asks the index for nothing", u.Raw)
			}
			for _, s := range places {
				if s.From < 0 || s.To > len(text) || s.From >= s.To {
					t.Fatalf("span %+v", s)
				}
			}
		}
		if utf8.ValidString(query) && !strings.Contains(query, `"`) && !strings.Contains(query, "*") && !found(t, query, query) {
			t.Fatalf("%q does not hold itself", query)
		}
		search.Wants(q)
	})
}

func BenchmarkTerms(b *testing.B) {
	text := strings.Repeat("The quick brownFox jumps over /usr/local/bin/foo_bar-1.2.3 and says hello@example.com. ", 90)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		search.Terms(text)
	}
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("The quick brownFox jumps over /usr/local/bin/foo_bar-1.2.3 and says hello@example.com. ", 90)
	q, err := search.Parse("fox hello@example.com usr* jumps")
	if err != nil {
		b.Fatal(err)
	}
	m := search.NewMatcher(q.Units)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Find(text, 32)
	}
}
