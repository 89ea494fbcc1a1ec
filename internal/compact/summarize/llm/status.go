package llm

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
)

// OfStatus is the failure that an HTTP status stands for. code is the
// provider's own word for it ("invalid_api_key"): messages may repeat what was
// sent, so they are left out.
func OfStatus(status int, header http.Header, code string, now time.Time) *summarize.Failure {
	f := &summarize.Failure{Status: status, Fault: faultOf(status), RetryAfter: retryAfter(header, now)}
	text := http.StatusText(status)
	if text == "" {
		text = "status " + strconv.Itoa(status)
	}
	if f.Code = word(code); f.Code != "" {
		text += " (" + f.Code + ")"
	}
	f.Err = errors.New(text)
	return f
}

func faultOf(status int) summarize.Fault {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusPaymentRequired:
		return summarize.FaultAccess
	case status == http.StatusTooManyRequests, status == 529:
		return summarize.FaultBusy
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return summarize.FaultSlow
	case status >= 500:
		return summarize.FaultDown
	case status >= 400:
		return summarize.FaultRequest
	}
	return summarize.FaultDown
}

// longestRetry is the longest time that a provider is believed.
const longestRetry = time.Hour

// retryAfter reads the header in its forms: milliseconds, seconds, a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if h == nil {
		return 0
	}
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = time.Duration(min(max(ms, 0), float64(longestRetry/time.Millisecond)) * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = time.Duration(min(max(s, 0), longestRetry.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestRetry)
}

// word lets a code pass that is one, and nothing else.
func word(s string) string {
	if len(s) > 64 {
		return ""
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return ""
		}
	}
	return s
}
