package engine

import "github.com/engined/engined/contextengine"

// RollingID is the id of the engine with one rolling summary.
const RollingID = "rolling"

// Rolling is Lossless with another shape of the past: the newest turns verbatim
// and one summary of all before them, retold with every compaction. Its windows
// are the simplest there are; what is old is told at ever greater length from
// memory, so details go sooner than in Lossless's tree. The log keeps all.
type Rolling struct{ Lossless }

// NewRolling makes the engine. Dispose ends it.
func NewRolling(cfg Config) *Rolling {
	r := &Rolling{Lossless: *NewLossless(cfg)}
	r.Compactor = newCompactor(r.cfg, roll(r.cfg))
	return r
}

// Info describes the engine.
func (r *Rolling) Info() contextengine.Info {
	info := r.Lossless.Info()
	info.ID, info.Name = RollingID, "engined rolling"
	return info
}
