package host

import "github.com/engined/engined/contextengine"

// settings describe the run, as far as the engine wants to know.
func (t *turn) settings(degraded contextengine.DiagnosticReason) *contextengine.RuntimeSettings {
	if !t.h.info.Accepts(contextengine.ParamRuntimeSettings) {
		return nil
	}
	s := &contextengine.RuntimeSettings{
		SchemaVersion: 1,
		Runtime:       contextengine.SettingsRuntime{Host: "engined-host", Mode: contextengine.RuntimeNormal},
		Model:         contextengine.SettingsModel{Requested: text(t.req.Model), Resolved: text(t.last.Model), Provider: text(t.last.Provider)},
		Selection:     contextengine.SettingsSelection{SelectedID: text(t.h.info.ID), Source: "configured"},
		Limits:        contextengine.SettingsLimits{PromptTokenBudget: number(t.req.TokenBudget)},
	}
	if m := s.Model; m.Resolved != nil && m.Requested != nil && *m.Resolved != *m.Requested {
		s.Runtime.Mode = contextengine.RuntimeFallback
	}
	if degraded != "" {
		s.Runtime.Mode, s.Diagnostics.DegradedReason = contextengine.RuntimeDegraded, &degraded
	}
	return s
}

// runtime is what the engine may know of the model behind the turn.
func (t *turn) runtime() *contextengine.RuntimeContext {
	if !t.h.info.Accepts(contextengine.ParamRuntimeContext) {
		return nil
	}
	return &contextengine.RuntimeContext{
		Provider: t.last.Provider, ModelID: t.req.Model, RunID: t.req.ID,
		ModelContextWindow: number(t.req.ContextWindow), TokenBudget: number(t.req.TokenBudget),
	}
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
