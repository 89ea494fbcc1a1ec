package remote

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// The calls, named by the last segment of their path.
const (
	opInfo        = "engine"
	opIngest      = "ingest"
	opAssemble    = "assemble"
	opCompact     = "compact"
	opBootstrap   = "bootstrap"
	opIngestBatch = "ingest-batch"
	opCommitTurn  = "commit-turn"
	opAfterTurn   = "after-turn"
	opMaintain    = "maintain"
	opSpawn       = "subagents"
	opRollback    = "subagents/rollback"
	opEnded       = "subagents/ended"
)

const (
	infoPath      = "/v1/engine"
	sessionsPath  = "/v1/sessions/"
	maxSessionKey = 512 // bytes, as the contract has it
)

// TenantHeader carries Session.Tenant, percent-encoded. It is not part of the
// body because only the transport, which knows the caller, may say it.
const TenantHeader = "Engined-Tenant"

// description is the answer of GET /v1/engine.
type description struct {
	contextengine.Info
	// Calls are the calls that the engine serves; absent means "ask and see".
	Calls []string `json:"calls,omitempty"`
}

// optional reports a call that an engine may lack.
func optional(op string) bool {
	switch op {
	case opInfo, opIngest, opAssemble, opCompact:
		return false
	}
	return true
}

// segment is a key as one segment of a path. Dots are encoded too, so that
// nothing takes "." or ".." for a direction.
func segment(key string) string { return strings.ReplaceAll(url.PathEscape(key), ".", "%2E") }

// sessionPath is the path of a call.
func sessionPath(key, op string) string { return sessionsPath + segment(key) + "/" + op }

// childPath is the path of a call about a sub-agent: opRollback or opEnded.
func childPath(key, child, op string) string {
	call, verb, _ := strings.Cut(op, "/")
	return sessionPath(key, call) + "/" + segment(child) + "/" + verb
}

// place is what a path names; child only where op is about one.
type place struct{ key, op, child string }

// parsePath undoes sessionPath and childPath. It looks at the escaped path,
// since a key may hold slashes and dots.
func parsePath(escaped string) (place, bool) {
	rest, ok := strings.CutPrefix(escaped, sessionsPath)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 2 && len(parts) != 4 {
		return place{}, false
	}
	key, err := url.PathUnescape(parts[0])
	if err != nil || len(parts) == 2 {
		return place{key: key, op: parts[1]}, err == nil
	}
	child, err := url.PathUnescape(parts[2])
	return place{key: key, op: parts[1] + "/" + parts[3], child: child}, err == nil
}

// checkSession refuses what would not arrive as it was sent.
func checkSession(s contextengine.Session) error {
	switch {
	case s.SessionKey == "":
		return invalid("sessionKey", "is required")
	case len(s.SessionKey) > maxSessionKey:
		return &contextengine.InvalidError{Field: "sessionKey", Reason: "is longer than 512 bytes", Limit: maxSessionKey}
	case strings.ContainsRune(s.SessionKey, 0):
		return invalid("sessionKey", "holds a NUL")
	}
	return checkText("sessionKey", s.SessionKey, "sessionId", s.SessionID, "gatewayId", s.GatewayID, "tenant", s.Tenant)
}

// checkText takes pairs of a field's name and its value.
func checkText(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if !utf8.ValidString(pairs[i+1]) {
			return invalid(pairs[i], "is not valid UTF-8")
		}
	}
	return nil
}

func invalid(field, reason string) error {
	return &contextengine.InvalidError{Field: field, Reason: reason}
}

// isJSON is a media type that carries JSON, or silence.
func isJSON(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || media == "application/json" || media == "application/x-www-form-urlencoded" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}
