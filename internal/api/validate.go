package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// check gathers the first fault of a request. Its methods do nothing after it.
type check struct {
	limits *Limits
	err    error
}

func (k *check) fail(field, reason string) {
	if k.err == nil {
		k.err = &contextengine.InvalidError{Field: field, Reason: reason}
	}
}

// key holds a key to its bounds; empty is for the caller to judge.
func (k *check) key(field, value string) {
	switch {
	case len(value) > k.limits.KeyBytes:
		if k.err == nil {
			k.err = &contextengine.InvalidError{
				Field: field, Reason: fmt.Sprintf("longer than %d bytes", k.limits.KeyBytes), Limit: int64(k.limits.KeyBytes),
			}
		}
	case !utf8.ValidString(value):
		k.fail(field, "not valid UTF-8")
	case strings.IndexByte(value, 0) >= 0:
		k.fail(field, "holds a NUL")
	}
}

func (k *check) required(field, value string) {
	if value == "" {
		k.fail(field, "is required")
	}
	k.key(field, value)
}

func (k *check) session(s contextengine.Session) {
	k.key("sessionId", s.SessionID)
	k.key("gatewayId", s.GatewayID)
	k.key("leaseToken", s.LeaseToken)
}

// expectations must not be negative: the store takes that for "none".
func (k *check) expectations(e contextengine.Expectations) {
	k.atLeast("expectedHead", e.ExpectedHead, 0)
	k.atLeast("expectedEpoch", e.ExpectedEpoch, 0)
}

func (k *check) atLeast(field string, n *int64, least int64) {
	if n != nil && *n < least {
		k.fail(field, fmt.Sprintf("must be %d or more", least))
	}
}

// tokens holds a count of tokens to [least, maxTokens].
func (k *check) tokens(field string, n *int, least int) {
	switch {
	case n == nil:
	case *n < least:
		k.fail(field, fmt.Sprintf("must be %d or more", least))
	case *n > maxTokens:
		if k.err == nil {
			k.err = &contextengine.InvalidError{Field: field, Reason: fmt.Sprintf("larger than %d", maxTokens), Limit: maxTokens}
		}
	}
}

func (k *check) usage(u *contextengine.Usage) {
	if u == nil {
		return
	}
	k.tokens("usage.input", &u.Input, 0)
	k.tokens("usage.output", &u.Output, 0)
	k.tokens("usage.cacheRead", &u.CacheRead, 0)
	k.tokens("usage.cacheWrite", &u.CacheWrite, 0)
}

func (k *check) runtime(r *contextengine.RuntimeContext) {
	if r == nil {
		return
	}
	k.tokens("runtimeContext.tokenBudget", r.TokenBudget, 1)
	k.tokens("runtimeContext.currentTokenCount", r.CurrentTokenCount, 0)
	k.tokens("runtimeContext.modelContextWindow", r.ModelContextWindow, 0)
}

// message tells what can be told of a message without reading it: the engine
// reads it anyway.
func (k *check) message(field string, m json.RawMessage) {
	switch {
	case len(m) == 0:
		k.fail(field, "is required")
	case m[0] != '{':
		k.fail(field, "must be a JSON object")
	case int64(len(m)) > k.limits.MessageBytes:
		if k.err == nil {
			k.err = &contextengine.InvalidError{
				Field: field, Reason: fmt.Sprintf("larger than %d bytes", k.limits.MessageBytes),
				Limit: k.limits.MessageBytes, TooLarge: true,
			}
		}
	}
}

func (k *check) messages(ms []json.RawMessage, least int) {
	if len(ms) < least {
		k.fail("messages", "at least one message")
	}
	for i := range ms {
		if k.err != nil {
			return
		}
		if m := ms[i]; len(m) == 0 || m[0] != '{' || int64(len(m)) > k.limits.MessageBytes {
			k.message(fmt.Sprintf("messages[%d]", i), m)
		}
	}
}

// object holds an optional member to being an object, as anchors are.
func (k *check) object(field string, m json.RawMessage) {
	if len(m) > 0 && m[0] != '{' && string(m) != "null" {
		k.fail(field, "must be a JSON object")
	}
}
