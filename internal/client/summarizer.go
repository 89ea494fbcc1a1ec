package client

import (
	"context"
	"net/http"
	"time"
)

// Summarizer is one of those that compactions ask.
type Summarizer struct {
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Model     string     `json:"model"`
	State     string     `json:"state"`
	OpenUntil *time.Time `json:"openUntil"`
	Failures  int        `json:"failures"`
	LastError string     `json:"lastError"`
	Today     struct {
		Calls        int64 `json:"calls"`
		Failed       int64 `json:"failed"`
		InputTokens  int64 `json:"inputTokens"`
		OutputTokens int64 `json:"outputTokens"`
		CostMicros   int64 `json:"costMicros"`
	} `json:"today"`
	DailyLimitMicros int64 `json:"dailyLimitMicros"`
}

// SummarizerList is whom a tenant's compactions ask, and what that cost since
// midnight UTC. LimitMicros is 0 for no limit of the tenant.
type SummarizerList struct {
	Summarizers []Summarizer `json:"summarizers"`
	Spend       struct {
		CostMicros  int64     `json:"costMicros"`
		LimitMicros int64     `json:"limitMicros"`
		ResetsAt    time.Time `json:"resetsAt"`
	} `json:"spend"`
}

// Summarizers lists whom a tenant's compactions ask.
func (c *Client) Summarizers(ctx context.Context) (SummarizerList, []byte, error) {
	return into[SummarizerList](c.call(ctx, http.MethodGet, "/v1/summarizers", nil, nil))
}
