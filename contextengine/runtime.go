package contextengine

import (
	"context"
	"encoding/json"
)

// SessionTarget is a transcript in the host's own terms.
type SessionTarget struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	// StorePath is where the host keeps it; of no use on another machine.
	StorePath string `json:"storePath,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
	// ExpectedLifecycleRevision changes when the session was reset under the
	// same id.
	ExpectedLifecycleRevision string `json:"expectedLifecycleRevision,omitempty"`
}

// RuntimeSettings describe the run that a call belongs to. A member that the
// host does not know is null. Version 1.
type RuntimeSettings struct {
	SchemaVersion int                `json:"schemaVersion"`
	Runtime       SettingsRuntime    `json:"runtime"`
	Model         SettingsModel      `json:"model"`
	Selection     SettingsSelection  `json:"contextEngineSelection"`
	ExecutionHost SettingsHost       `json:"executionHost"`
	Limits        SettingsLimits     `json:"limits"`
	Diagnostics   SettingsDiagnostic `json:"diagnostics"`
}

// RuntimeMode tells how well the run goes.
type RuntimeMode string

// The modes: degraded has a degraded reason, fallback a fallback reason or
// another model than the one asked for.
const (
	RuntimeNormal   RuntimeMode = "normal"
	RuntimeFallback RuntimeMode = "fallback"
	RuntimeDegraded RuntimeMode = "degraded"
)

// SettingsRuntime names the program that runs the agent.
type SettingsRuntime struct {
	Host      string      `json:"host"`
	Mode      RuntimeMode `json:"mode"`
	HarnessID *string     `json:"harnessId"`
	RuntimeID *string     `json:"runtimeId"`
}

// SettingsModel is the model asked for and the one that answers.
type SettingsModel struct {
	Requested *string `json:"requested"`
	Resolved  *string `json:"resolved"`
	Provider  *string `json:"provider"`
	Family    *string `json:"family"`
}

// SettingsSelection is how the engine came into the slot: "configured",
// "default" or "unknown".
type SettingsSelection struct {
	SelectedID *string `json:"selectedId"`
	Source     string  `json:"source"`
}

// SettingsHost is what executes the run.
type SettingsHost struct {
	ID    *string `json:"id"`
	Label *string `json:"label"`
}

// SettingsLimits are in tokens.
type SettingsLimits struct {
	PromptTokenBudget *int `json:"promptTokenBudget"`
	MaxOutputTokens   *int `json:"maxOutputTokens"`
}

// SettingsDiagnostic tells why the mode is not normal.
type SettingsDiagnostic struct {
	FallbackReason *DiagnosticReason `json:"fallbackReason"`
	DegradedReason *DiagnosticReason `json:"degradedReason"`
}

// DiagnosticReason is a code for free text.
type DiagnosticReason string

// The codes.
const (
	DiagnosticTimeout     DiagnosticReason = "provider_timeout"
	DiagnosticUnavailable DiagnosticReason = "provider_unavailable"
	DiagnosticRateLimited DiagnosticReason = "rate_limited"
	DiagnosticOverflow    DiagnosticReason = "context_overflow"
	DiagnosticRuntime     DiagnosticReason = "runtime_unavailable"
	DiagnosticUnknown     DiagnosticReason = "unknown"
)

// RuntimeContext is the part of the host's open record that engines read. What
// it leaves out may hold secrets (the host's whole configuration does) and is
// not sent.
type RuntimeContext struct {
	Provider string `json:"provider,omitempty"`
	ModelID  string `json:"modelId,omitempty"`
	// ModelContextWindow, TokenBudget and CurrentTokenCount are in tokens.
	ModelContextWindow *int        `json:"modelContextWindow,omitempty"`
	TokenBudget        *int        `json:"tokenBudget,omitempty"`
	CurrentTokenCount  *int        `json:"currentTokenCount,omitempty"`
	PromptCache        *CacheFacts `json:"promptCache,omitempty"`
	AgentHarnessID     string      `json:"agentHarnessId,omitempty"`
	RunID              string      `json:"runId,omitempty"`
	// Trigger is why a compaction was asked for ("overflow", "manual",
	// "timeout_recovery", …), ForceReason why it was forced.
	Trigger     string `json:"trigger,omitempty"`
	ForceReason string `json:"forceReason,omitempty"`
	// Attempt counts the compactions of a run from 1, up to MaxAttempts.
	Attempt     int `json:"attempt,omitempty"`
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// AllowDeferredCompaction is set where Maintain runs in the background and
	// may take its time.
	AllowDeferredCompaction bool `json:"allowDeferredCompactionExecution,omitempty"`
	// Completer asks the host's model. A host behind a network has none.
	Completer Completer `json:"-"`
}

// CacheFacts are what a host knows of the provider's prompt cache.
type CacheFacts struct {
	// Retention is "none", "short", "long", "in_memory" or "24h".
	Retention     string            `json:"retention,omitempty"`
	LastCallUsage *Usage            `json:"lastCallUsage,omitempty"`
	Observation   *CacheObservation `json:"observation,omitempty"`
	// LastTouchAt and ExpiresAt are milliseconds since 1970.
	LastTouchAt int64 `json:"lastCacheTouchAt,omitempty"`
	ExpiresAt   int64 `json:"expiresAt,omitempty"`
}

// CacheObservation compares the last call's cache with the one before; token
// counts.
type CacheObservation struct {
	Broke             bool          `json:"broke"`
	PreviousCacheRead *int          `json:"previousCacheRead,omitempty"`
	CacheRead         *int          `json:"cacheRead,omitempty"`
	Changes           []CacheChange `json:"changes,omitempty"`
}

// CacheChange is one thing that changed the prompt's prefix.
type CacheChange struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Completer is the host's model, with the host's credentials and accounting.
type Completer interface {
	Complete(ctx context.Context, p CompletionParams) (Completion, error)
}

// CompletionParams is one call of a model. Zero members are the host's choice.
type CompletionParams struct {
	Model          string              `json:"model,omitempty"`
	MaxTokens      int                 `json:"maxTokens,omitempty"`
	Temperature    *float64            `json:"temperature,omitempty"`
	Reasoning      string              `json:"reasoning,omitempty"`
	SystemPrompt   string              `json:"systemPrompt,omitempty"`
	Purpose        string              `json:"purpose,omitempty"`
	AgentID        string              `json:"agentId,omitempty"`
	Messages       []CompletionMessage `json:"messages"`
	ResponseFormat json.RawMessage     `json:"responseFormat,omitempty"`
}

// CompletionMessage is plain text; Role is "system", "user" or "assistant".
type CompletionMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Completion is the model's answer.
type Completion struct {
	Text       string          `json:"text"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitempty"`
	Usage      CompletionUsage `json:"usage"`
}

// CompletionUsage is in tokens.
type CompletionUsage struct {
	InputTokens      int `json:"inputTokens"`
	OutputTokens     int `json:"outputTokens"`
	CacheReadTokens  int `json:"cacheReadTokens"`
	CacheWriteTokens int `json:"cacheWriteTokens"`
	TotalTokens      int `json:"totalTokens"`
}
