package engine

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Quarantine sets an engine aside for the life of the process: the default
// engine serves in its place. The first failure is the one that is kept.
type Quarantine struct {
	EngineID  string    `json:"engineId"`
	Operation Operation `json:"operation"`
	Reason    string    `json:"reason"`
	FailedAt  time.Time `json:"failedAt"`
	Owner     string    `json:"owner,omitempty"`
}

// Quarantines lists what is set aside, by engine.
func (r *Registry) Quarantines() []Quarantine {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Quarantine, 0, len(r.quarantines))
	for _, id := range slices.Sorted(maps.Keys(r.quarantines)) {
		out = append(out, r.quarantines[id])
	}
	return out
}

// ClearQuarantine gives an engine another chance: the next call makes a new
// instance of it. It tells whether the engine was set aside.
func (r *Registry) ClearQuarantine(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.quarantines[id]; !ok {
		return false
	}
	delete(r.quarantines, id)
	if e, ok := r.entries[id]; ok {
		r.generation++
		e.generation = r.generation
		r.entries[id] = e
	}
	r.cfg.Logger.Info("quarantine cleared by an operator", "engine", id)
	return true
}

// setAside quarantines an engine, unless it is already or the failure is that
// of an earlier registration.
func (r *Registry) setAside(id string, generation uint64, op Operation, err error) {
	r.mu.Lock()
	e := r.entries[id]
	_, already := r.quarantines[id]
	if already || e.generation != generation {
		r.mu.Unlock()
		return
	}
	r.quarantines[id] = Quarantine{EngineID: id, Operation: op, Reason: reasonOf(err), FailedAt: r.cfg.Now(), Owner: e.Owner}
	known := strings.Join(slices.Sorted(maps.Keys(r.entries)), ", ")
	r.mu.Unlock()
	attrs := []any{"engine", id, "owner", e.Owner, "operation", op, "reason", reasonOf(err), "default", LegacyID}
	if p, ok := err.(*panicError); ok { //nolint:errorlint // ours, never wrapped
		attrs = append(attrs, "stack", string(p.stack))
	}
	if op == OpResolve { // most often a typing error in the setting
		r.cfg.Logger.Error("there is no context engine of the name that is set; it is set aside for this process and the default engine serves", append(attrs, "known", known)...)
		return
	}
	r.cfg.Logger.Error("context engine failed; it is set aside for this process and the default engine serves", attrs...)
}
