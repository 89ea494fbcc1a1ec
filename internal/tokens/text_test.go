package tokens

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// reporter is what testing.T and rapid.T share.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// within fails when the estimate of s is under the true count by more than
// StatedError, or over it by more than over percent. A text of a few tokens
// may be off by one.
func within(t reporter, s string, over int) {
	t.Helper()
	truth, err := o200k(t).Count(s)
	if err != nil {
		t.Fatal(err)
	}
	got := Text(s)
	if got*100 < truth*(100-StatedError) {
		t.Errorf("%.60q…: estimate %d, truth %d: more than %d%% under", s, got, truth, StatedError)
	}
	if over > 0 && got > truth+truth*over/100+1 {
		t.Errorf("%.60q…: estimate %d, truth %d: more than %d%% over", s, got, truth, over)
	}
}

func TestTextOnRealSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			within(t, string(body), 5)
			for par := range strings.SplitSeq(string(body), "\n\n") {
				within(t, par, 35)
			}
		})
	}
}

func TestTextOnKinds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 6000)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	chars := func(from, n rune) string {
		var b strings.Builder
		for range 3000 {
			b.WriteRune(from + rune(r.IntN(int(n))))
		}
		return strings.ToValidUTF8(b.String(), "?")
	}
	for name, s := range map[string]string{
		"empty": "", "one": "x",
		"base64": base64.StdEncoding.EncodeToString(raw),
		"hex":    hex.EncodeToString(raw),
		"HEX":    strings.ToUpper(hex.EncodeToString(raw)),
		"digits": chars('0', 10), "letters": chars('a', 26), "capitals": chars('A', 26), "ascii": chars(' ', 95),
		"latin": chars(0xC0, 0x100), "cyrillic": chars(0x400, 0x60), "arabic": chars(0x620, 0x2B), "devanagari": chars(0x900, 0x80),
		"thai": chars(0xE01, 0x30), "kana": chars(0x3041, 0xB0), "cjk": chars(0x4E00, 0x51FF), "hangul": chars(0xAC00, 0x2BA0),
		"emoji": chars(0x1F300, 0x300), "flags": chars(0x1F1E6, 26), "any": chars(1, 0x30000), "high": chars(0x30000, 0xE0000),
		"privacy":       "The quick brown fox doesn't jump; it's tired, they'll say. WE'RE DONE, I'd think.",
		"chinese":       strings.Repeat("我们需要先检查日志文件,然后再决定如何修复这个错误。", 40),
		"korean":        strings.Repeat("로그 파일을 먼저 확인한 다음 오류를 수정하는 방법을 결정해야 합니다. ", 40),
		"russian":       strings.Repeat("Сначала нужно проверить журнал, а затем решить, как исправить ошибку. ", 40),
		"arabic prose":  strings.Repeat("يجب علينا أولاً التحقق من ملف السجل ثم نقرر كيفية إصلاح الخطأ. ", 40),
		"minified":      strings.Repeat(`!function(e,t){"use strict";var n=e[0]||{},r=n.a?n.b:t;for(var i=0;i<r.length;i++)n[r[i]]=(i<<2)^0x1f}(a,b);`, 30),
		"log":           strings.Repeat("2026-01-02T03:04:05.678Z ERROR [worker-7] conn 10.0.0.12:5432 reset after 30001ms (errno=104)\r\n", 30),
		"blank lines":   strings.Repeat("\n \t\n", 500) + strings.Repeat("a\n\n\n    b\n", 300),
		"box drawing":   strings.Repeat("│ ├── src ─────┤\n", 100),
		"ansi":          strings.Repeat("\x1b[31m✗\x1b[0m \x1b[1mfail\x1b[22m\n", 100),
		"family emoji":  strings.Repeat("👨‍👩‍👧‍👦❤️🏳️‍🌈", 200),
		"diff":          strings.Repeat("@@ -1,7 +1,9 @@\n-\told()\n+\tnew(ctx)\n", 100),
		"marks":         strings.Repeat("e\u0301\u0300\u0302", 500),
		"control":       strings.Repeat("\x00\x01\x02", 500),
		"word unbroken": strings.Repeat("supercalifragilistic", 200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, s, 0)
		})
	}
	for _, sign := range []string{"a", "A", " ", "\n", "\t", "=", "-", "_", "*", ".", "#", "0", "日", "あ", "ы", "é", "😀", "\r\n", "ab", "-="} {
		for _, n := range []int{2, 3, 15, 17, 64, 127, 128, 129, 1000, 5000} {
			within(t, strings.Repeat(sign, n), 0)
			within(t, "x"+strings.Repeat(sign, n)+"y", 0)
		}
	}
}

func TestTextProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(
			rapid.StringN(0, 30, -1),
			rapid.StringMatching(`[a-z]{1,12}`),
			rapid.StringMatching(`[A-Za-z0-9+/=]{1,40}`),
			rapid.StringMatching(`[ \t\r\n]{1,6}`),
			rapid.StringMatching(`[-=_*#.{}()\[\];:"'<>/]{1,8}`),
			rapid.StringMatching(`[ぁ-んァ-ヶ一-龠]{1,60}`),
			rapid.StringMatching(`[а-яА-Я]{1,20}`),
		)
		var b strings.Builder
		for _, w := range rapid.SliceOfN(word, 0, 12).Draw(t, "words") {
			b.WriteString(strings.Repeat(w, rapid.SampledFrom([]int{1, 1, 1, 2, 9}).Draw(t, "times")))
		}
		// The reference tokenizer has no tokens for DEL and loses it.
		within(t, strings.ReplaceAll(b.String(), "\x7f", ""), 0)
	})
}

func TestTextTakesAnyBytes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"\xff", "\xe3\x81", strings.Repeat("\x80", 1000), "a\xffb\xf0\x9f\x98"} {
		if n := Text(s); n < 1 || n > len(s)+len(s)/part+1 {
			t.Errorf("Text(%.20q) = %d", s, n)
		}
	}
}

func TestTextAllocatesNothing(t *testing.T) {
	s := strings.Repeat("The quick brown föx 日本語 0123 ==== \n", 50)
	if n := testing.AllocsPerRun(10, func() { Text(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
