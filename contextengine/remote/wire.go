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

// sessionPath is the path of a call, the key percent-encoded as one segment.
// Dots are encoded too, so that nothing takes "." or ".." for a direction.
func sessionPath(key, op string) string {
	return sessionsPath + strings.ReplaceAll(url.PathEscape(key), ".", "%2E") + "/" + op
}

// parsePath undoes sessionPath. It looks at the escaped path, since a key may
// hold slashes and dots.
func parsePath(escaped string) (key, op string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, sessionsPath)
	if !ok {
		return "", "", false
	}
	segment, op, ok := strings.Cut(rest, "/")
	if !ok || strings.Contains(op, "/") {
		return "", "", false
	}
	key, err := url.PathUnescape(segment)
	return key, op, err == nil
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
