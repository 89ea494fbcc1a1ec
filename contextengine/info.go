package contextengine

import "slices"

// Info describes an engine to its host. ID and Name are not blank.
type Info struct {
	// ID names the engine in the slot, compared byte for byte.
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// AcceptedHostParams lists which of the parameters that hosts added over
	// time the engine wants. Nil is all of them; an empty list is none. Other
	// parameters always pass.
	AcceptedHostParams []HostParam `json:"acceptedHostParams,omitzero"`
	// TranscriptSemantics is what the engine promises of turns. A host that
	// commits turns durably uses no engine that does not promise both.
	TranscriptSemantics *TranscriptSemantics `json:"transcriptSemantics,omitempty"`
	// OwnsCompaction switches the host's own compaction off for sessions of
	// this engine, and has the host assemble before every model call.
	OwnsCompaction bool `json:"ownsCompaction,omitempty"`
	// TurnMaintenanceMode says whether a turn waits for its maintenance;
	// ForegroundMaintenance where it is empty.
	TurnMaintenanceMode TurnMaintenanceMode `json:"turnMaintenanceMode,omitempty"`
	// HostRequirements says what a host must be able to do for an operation.
	HostRequirements map[HostOperation]HostRequirement `json:"hostRequirements,omitempty"`
}

// HostParam is a parameter that an engine may decline.
type HostParam string

// The parameters that AcceptedHostParams speaks of. The abort signal is the
// call's context here: it always arrives.
const (
	ParamSessionKey      HostParam = "sessionKey"
	ParamPrompt          HostParam = "prompt"
	ParamRuntimeSettings HostParam = "runtimeSettings"
	ParamSessionTarget   HostParam = "sessionTarget"
	ParamRuntimeContext  HostParam = "runtimeContext"
	ParamAbortSignal     HostParam = "abortSignal"
)

// Accepts tells whether a host parameter should reach the engine.
func (i Info) Accepts(p HostParam) bool {
	return i.AcceptedHostParams == nil || slices.Contains(i.AcceptedHostParams, p)
}

// TranscriptSemantics are promises by name; an unknown name is none.
type TranscriptSemantics struct {
	// CurrentTurnFence: Assemble and Bootstrap see history up to the entry
	// before the current turn's.
	CurrentTurnFence string `json:"currentTurnFence,omitempty"`
	// TurnAdvancementIdempotency: CommitTurn stores a turn whole and once.
	TurnAdvancementIdempotency string `json:"turnAdvancementIdempotency,omitempty"`
}

// The promises that hosts know.
const (
	FenceBeforeCurrentTurn = "before-current-turn-entry-v1"
	AtomicIdempotentTurns  = "atomic-idempotent-v1"
)

// Durable tells whether a host may commit turns durably to the engine.
func (i Info) Durable() bool {
	s := i.TranscriptSemantics
	return s != nil && s.CurrentTurnFence == FenceBeforeCurrentTurn && s.TurnAdvancementIdempotency == AtomicIdempotentTurns
}

// TurnMaintenanceMode is how maintenance after a turn runs. After a bootstrap
// and a compaction it always runs in the foreground.
type TurnMaintenanceMode string

// The two modes.
const (
	ForegroundMaintenance TurnMaintenanceMode = "foreground"
	BackgroundMaintenance TurnMaintenanceMode = "background"
)

// HostOperation is something a host does with an engine.
type HostOperation string

// The operations that have requirements.
const (
	OpAgentRun      HostOperation = "agent-run"
	OpManualCompact HostOperation = "manual-compact"
	OpSubagentSpawn HostOperation = "subagent-spawn"
)

// Capability is something a host can do for an engine.
type Capability string

// The capabilities that there are.
const (
	CapBootstrap         Capability = "bootstrap"
	CapAssemble          Capability = "assemble-before-prompt"
	CapAfterTurn         Capability = "after-turn"
	CapMaintain          Capability = "maintain"
	CapCompact           Capability = "compact"
	CapRuntimeCompletion Capability = "runtime-llm-complete"
	CapThreadProjection  Capability = "thread-bootstrap-projection"
)

// HostRequirement is what an engine needs of its host for an operation.
type HostRequirement struct {
	RequiredCapabilities []Capability `json:"requiredCapabilities"`
	// UnsupportedMessage tells a user what to do about a host that lacks them.
	UnsupportedMessage string `json:"unsupportedMessage,omitempty"`
}

// Missing lists what a host with these capabilities lacks for an operation, in
// the engine's order.
func (i Info) Missing(op HostOperation, have []Capability) []Capability {
	var lacking []Capability
	for _, c := range i.HostRequirements[op].RequiredCapabilities {
		if !slices.Contains(have, c) {
			lacking = append(lacking, c)
		}
	}
	return lacking
}
