package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problemBase is what the type URI of every problem starts with; the slug
// follows. It is a name, not a place.
const problemBase = "https://github.com/engined/engined/problems/"

// kind is one problem a client can meet: its slug never changes.
type kind struct {
	slug   string
	status int
	title  string
}

// The problems. The OpenAPI document lists them.
var (
	kindMalformed     = kind{"malformed", http.StatusBadRequest, "The request can't be read"}
	kindUnauthorized  = kind{"unauthorized", http.StatusUnauthorized, "A valid API key is required"}
	kindForbidden     = kind{"forbidden", http.StatusForbidden, "Not allowed"}
	kindNotFound      = kind{"not-found", http.StatusNotFound, "Nothing is here"}
	kindUnknown       = kind{"unknown-session", http.StatusNotFound, "No such session"}
	kindMethod        = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not allowed here"}
	kindSlowBody      = kind{"request-timeout", http.StatusRequestTimeout, "The request took too long to arrive"}
	kindIdempotency   = kind{"idempotency-conflict", http.StatusConflict, "The key already names another payload"}
	kindEpoch         = kind{"epoch-conflict", http.StatusConflict, "The session is in another epoch"}
	kindErased        = kind{"session-erased", http.StatusConflict, "The session was erased"}
	kindLeaseHeld     = kind{"lease-held", http.StatusConflict, "Another owner holds the lease"}
	kindLease         = kind{"lease-stale", http.StatusConflict, "The lease token is wrong or expired"}
	kindExists        = kind{"session-exists", http.StatusConflict, "The key has a session already"}
	kindBegan         = kind{"subagent-began", http.StatusConflict, "The sub-agent has begun"}
	kindNothingToUndo = kind{"nothing-to-undo", http.StatusConflict, "No compaction to undo"}
	kindKeyGone       = kind{"session-key-gone", http.StatusGone, "The session's key was destroyed"}
	kindDamaged       = kind{"damaged", http.StatusGone, "What is stored is damaged"}
	kindEncryption    = kind{"encryption-unavailable", http.StatusServiceUnavailable, "The session's key is not to be had"}
	kindFeedEra       = kind{"feed-era", http.StatusGone, "The cursor is of an earlier era of the feed"}
	kindFeedClosed    = kind{"feed-closed", http.StatusServiceUnavailable, "The feed is closed"}
	kindStaleHead     = kind{"stale-head", http.StatusPreconditionFailed, "The session has moved on"}
	kindTooLarge      = kind{"too-large", http.StatusRequestEntityTooLarge, "Over a stated limit"}
	kindMedia         = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, "The body's encoding is not supported"}
	kindValidation    = kind{"validation", http.StatusUnprocessableEntity, "The request breaks the contract"}
	kindRate          = kind{"rate-limited", http.StatusTooManyRequests, "Too many at once"}
	kindTenantLimit   = kind{"tenant-limit", http.StatusForbidden, "The tenant has as much as it may"}
	kindInternal      = kind{"internal", http.StatusInternalServerError, "Something went wrong on our side"}
	kindEngineFailed  = kind{"engine-failed", http.StatusBadGateway, "The context engine failed"}
	kindUnavailable   = kind{"unavailable", http.StatusServiceUnavailable, "The database is away"}
	kindBusy          = kind{"too-busy", http.StatusServiceUnavailable, "The node is at its limit"}
	kindNotReady      = kind{"not-ready", http.StatusServiceUnavailable, "The node is not ready"}
	kindDeadline      = kind{"deadline", http.StatusGatewayTimeout, "The call did not finish in time"}
)

func kinds() []kind {
	return []kind{
		kindMalformed, kindUnauthorized, kindForbidden, kindNotFound, kindUnknown, kindMethod, kindSlowBody,
		kindIdempotency, kindEpoch, kindErased, kindLeaseHeld, kindLease, kindExists, kindBegan, kindNothingToUndo, kindKeyGone, kindDamaged, kindFeedEra, kindStaleHead, kindTooLarge, kindMedia,
		kindValidation, kindRate, kindTenantLimit, kindInternal, kindEngineFailed, kindUnavailable, kindBusy, kindNotReady, kindEncryption, kindFeedClosed, kindDeadline,
	}
}

// Problem is an RFC 9457 problem. The fields after Detail are set where a
// program can use them.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Field is what to change, in the request's own words.
	Field string `json:"field,omitempty"`
	// Limit is the limit that was passed.
	Limit int64 `json:"limit,omitempty"`
	// Offset is the byte of the body at which the trouble was seen.
	Offset int64 `json:"offset,omitempty"`
	// Head and Epoch are the session's current ones.
	Head  *int64 `json:"head,omitempty"`
	Epoch *int64 `json:"epoch,omitempty"`
	// ExpiresAt is when a lease that another owner holds ends, unless renewed.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Seq is the event that a known key already names, or the damaged one.
	Seq int64 `json:"seq,omitempty"`
	// Checks are a node's, where it is not ready.
	Checks []Check `json:"checks,omitempty"`

	retryAfter int
}

func (k kind) problem(detail string) *Problem {
	return &Problem{Type: problemBase + k.slug, Title: k.title, Status: k.status, Detail: detail}
}

func (p *Problem) Error() string { return p.Detail }

func (p *Problem) field(name string) *Problem {
	p.Field = name
	return p
}

func (p *Problem) retry(seconds int) *Problem {
	p.retryAfter = seconds
	return p
}

func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		// No field of a Problem can fail to marshal.
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="engined"`)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that is gone does not read its problem
}
