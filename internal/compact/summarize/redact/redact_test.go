package redact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/redact"
)

const pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nAAAAtzc2gtZWQyNTUxOQAAACB\n-----END OPENSSH PRIVATE KEY-----"

func TestText(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for in, want := range map[string]string{
		"Authorization: Bearer abcDEF123456.xyz-_":                                      "Authorization: Bearer [redacted:bearer-token]",
		"authorization: basic dXNlcjpwYXNzd29yZA==":                                     "authorization: basic [redacted:basic-credentials]",
		"use sk-proj-AbCdEf0123456789abcdef now":                                        "use [redacted:api-key] now",
		"key sk-ant-api03-abcdefghijklmnop_qrstuv":                                      "key [redacted:api-key]",
		"stripe sk_live_0123456789abcdefgh":                                             "stripe [redacted:api-key]",
		"AKIAIOSFODNN7EXAMPLE":                                                          "[redacted:aws-key]",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXKEY":                   "aws_secret_access_key = [redacted:aws-secret]",
		"before\n" + pem + "\nafter":                                                    "before\n[redacted:private-key]\nafter",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEow cut here":                              "[redacted:private-key]",
		"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----": "[redacted:private-key]",
		"postgres://app:s3cr3t@db:5432/app":                                             "postgres://app:[redacted:password]@db:5432/app",
		"redis://:hunter22@cache":                                                       "redis://:[redacted:password]@cache",
		`{"password": "hunter2hunter2", "a": 1}`:                                        `{"password": "[redacted:password]", "a": 1}`,
		"DB_PASSWORD=hunter2hunter2":                                                    "DB_PASSWORD=[redacted:password]",
		"ghp_0123456789abcdefghijklmnopqrstuvwxyz":                                      "[redacted:github-token]",
		"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2":                             "[redacted:json-web-token]",
		// What only looks like it.
		"401 Unauthorized: no bearer token":     "401 Unauthorized: no bearer token",
		"https://example.com:8080/a@b":          "https://example.com:8080/a@b",
		"task-force, risk-averse, disk-usage":   "task-force, risk-averse, disk-usage",
		"the password is asked for at login":    "the password is asked for at login",
		"commit 4f2a9c1d8e7b6a5f4e3d2c1b0a9f8e": "commit 4f2a9c1d8e7b6a5f4e3d2c1b0a9f8e",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestRedactingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	r := redact.New()
	bits := rapid.SampledFrom([]string{
		"Bearer ", "abcDEF123456xyz", "password=", "sk-0123456789abcdefgh", "://u:", "@host", "\n", " ", "\"", "AKIAIOSFODNN7EXAMPLE",
		"[redacted:api-key]", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "https", ":", "=", "api_key",
	})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(bits).Draw(t, "bits"), "")
		once := r.Text(s)
		if twice := r.Text(once); twice != once {
			t.Fatalf("%q, then %q", once, twice)
		}
	})
}

func TestOwnRulesComeFirst(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse(strings.NewReader("# ours\n\ncustomer=CUST-\\d{6}\nbadge=(badge )\\w+\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := redact.New(rules...)
	if got := r.Text("CUST-123456 has badge b77"); got != "[redacted:customer] has badge [redacted:badge]" {
		t.Error(got)
	}
	if r.Version() == redact.New().Version() {
		t.Error("the rules are no part of the version")
	}
	for _, bad := range []string{"no expression", "a b=x", "k=(", "k=x*"} {
		if _, err := redact.Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestRequestIsCopied(t *testing.T) {
	t.Parallel()
	req := summarize.Request{
		Lines:        []summarize.Line{{Text: "AKIAIOSFODNN7EXAMPLE", Speaker: "Bearer abcdefghijklmnop", Tool: "t"}},
		Children:     []summarize.Child{{Text: "sk-0123456789abcdefgh"}},
		Instructions: "password=hunter2hunter2",
	}
	got := redact.New().Request(req)
	want := summarize.Request{
		Lines:        []summarize.Line{{Text: "[redacted:aws-key]", Speaker: "Bearer [redacted:bearer-token]", Tool: "t"}},
		Children:     []summarize.Child{{Text: "[redacted:api-key]"}},
		Instructions: "password=[redacted:password]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if req.Lines[0].Text != "AKIAIOSFODNN7EXAMPLE" || req.Children[0].Text != "sk-0123456789abcdefgh" {
		t.Error("the given request was changed")
	}
	if diff := cmp.Diff(req, redact.None().Request(req)); diff != "" {
		t.Error(diff)
	}
}
