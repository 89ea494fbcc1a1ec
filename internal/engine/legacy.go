package engine

import (
	"context"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// Legacy is the default engine: it stores, passes the host's messages through
// and delegates compaction to the host's native runtime. It never owes a
// compaction.
type Legacy struct {
	Lossless
	runtime contextengine.CompactionRuntime
}

// NewLegacy makes the engine. A nil runtime is the native one, which keeps its
// summaries in the log.
func NewLegacy(cfg Config, runtime contextengine.CompactionRuntime) *Legacy {
	l := &Legacy{Lossless: *NewLossless(cfg), runtime: runtime}
	l.writer.owes = false
	l.Compactor = newCompactor(l.cfg, native(l.cfg))
	if runtime == nil {
		l.runtime = l.Compactor
	}
	return l
}

// Info describes the engine.
func (l *Legacy) Info() contextengine.Info {
	info := l.Lossless.Info()
	info.ID, info.Name, info.OwnsCompaction = LegacyID, "engined legacy", false
	return info
}

// Assemble passes the given messages through, unchanged and unbounded, as the
// host's own engine does. Without any it shows the stored window.
func (l *Legacy) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	if len(p.Messages) == 0 {
		return l.Lossless.Assemble(ctx, p)
	}
	if err := checkSession(p.Session); err != nil {
		return contextengine.AssembleResult{}, err
	}
	res := contextengine.AssembleResult{Messages: p.Messages, Epoch: 1}
	s, err := l.cfg.Log.Session(ctx, p.Tenant, p.SessionKey)
	if err == nil {
		res.Head, res.Epoch = s.Head, s.Epoch
	} else if _, err = unknownIsFine(res, err); err != nil {
		return contextengine.AssembleResult{}, err
	}
	for _, raw := range p.Messages {
		if m, err := message.Read(raw); err == nil {
			res.EstimatedTokens += m.Facts(tokens.Message).Tokens
		}
	}
	return res, nil
}

// Compact is the native runtime, which ignores compactionTarget.
func (l *Legacy) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.CompactResult{}, err
	}
	p.Runtime = l.runtime
	return contextengine.DelegateCompaction(ctx, p)
}
