package main

import (
	"strings"
	"testing"
)

func TestWrongCallsSayWhatToTypeInstead(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"window":                                "KEY is missing: engined window KEY\nTry: engined window --help",
		"show":                                  "KEY is missing: engined show KEY\nTry: engined show --help",
		"engines clear":                         "ID is missing: engined engines clear ID\nTry: engined engines clear --help",
		"tail a b":                              `one KEY is expected, not 2; "b" is too many`,
		"import":                                "FILE is missing: engined import FILE…",
		"window k --budget abc":                 `--budget: "abc" is not a number of tokens`,
		"window k --as-of 1.5":                  `--as-of: "1.5" is not a seq`,
		"events k --limit 99999999999999999999": `--limit: "99999999999999999999" is not a number of rows`,
		"events k --limit -1":                   `--limit: "-1" is not a number of rows, 0 or more`,
		"tenants set t --rate NaN":              "a limit is 0 or more",
		"tenants set t --spend +Inf":            "a limit is 0 or more",
		"serve --compaction-threshold 1.5":      "engined: --compaction-threshold: 1.5 is not a share",
		"retention --retention-idle 90":         `engined: --retention-idle: "90" is not a period such as 90d`,
		"window k --explain=perhaps":            `--explain: "perhaps" is neither true nor false`,
		"window k --moon":                       "unknown flag: --moon\nTry: engined window --help",
		"moon":                                  `unknown command "moon"`,
		"doctor --verify":                       "--verify reads Postgres: set --database-url or ENGINED_DATABASE_URL (engined dev says",
	} {
		got := engined(t, strings.Fields(args)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) || strings.Contains(got.err, "strconv") {
			t.Errorf("engined %s: %d %q", args, got.code, got.err)
		}
	}
}

func TestLongKeysAreShortenedInTheMiddle(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"short":                                "short",
		strings.Repeat("a", 48):                strings.Repeat("a", 48),
		strings.Repeat("a", 60) + "0123456789": strings.Repeat("a", 24) + "…" + strings.Repeat("a", 13) + "0123456789",
		strings.Repeat("語", 30):                strings.Repeat("語", 12) + "…" + strings.Repeat("語", 11),
	} {
		if got := middle(key, 48); got != want || columns(got) > 48 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
