package engine

import (
	"encoding/json"
	"slices"

	"github.com/engined/engined/contextengine"
)

// The functions below give an engine parameters of its own, without what it
// declines: a foreign engine may keep and change what it gets, also after its
// call was given up, and the default engine may have to answer the same call.
// The built-in engines read and never write; they get the caller's.

type own struct {
	info contextengine.Info
	copy bool
}

func (in *instance) own() own { return own{in.info, !in.core} }

func (o own) session(s *contextengine.Session) {
	if !o.info.Accepts(contextengine.ParamSessionKey) {
		s.SessionKey = ""
	}
}

func (o own) runtime(target **contextengine.SessionTarget, settings **contextengine.RuntimeSettings, rc **contextengine.RuntimeContext) {
	if !o.info.Accepts(contextengine.ParamSessionTarget) {
		*target = nil
	}
	if !o.info.Accepts(contextengine.ParamRuntimeSettings) {
		*settings = nil
	}
	if !o.info.Accepts(contextengine.ParamRuntimeContext) {
		*rc = nil
	}
	if !o.copy {
		return
	}
	*target, *settings = deep(*target), deep(*settings)
	if was := *rc; was != nil {
		*rc = deep(was)
		(*rc).Completer = was.Completer
	}
}

// deep copies a value of the wire by way of the wire.
func deep[T any](v *T) *T {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings, numbers and booleans
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err) // what was just written
	}
	return &out
}

func (o own) message(m json.RawMessage) json.RawMessage {
	if !o.copy {
		return m
	}
	return slices.Clone(m)
}

func (o own) messages(ms []json.RawMessage) []json.RawMessage {
	if !o.copy || ms == nil {
		return ms
	}
	out := make([]json.RawMessage, len(ms))
	for i, m := range ms {
		out[i] = o.message(m)
	}
	return out
}

func (o own) strings(ss []string) []string {
	if !o.copy {
		return ss
	}
	return slices.Clone(ss)
}
