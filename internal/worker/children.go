package worker

import "context"

// childrenLimit is how many sub-agents one sweep looks at. Each is a transaction
// of its own, so a sweep holds up nobody.
const childrenLimit = 64

// sweepChildren removes sub-agents that were readied and never began.
func (w *Worker) sweepChildren(ctx context.Context) (more bool, err error) {
	removed, more, err := w.cfg.Debts.SweepChildren(ctx, childrenLimit)
	if removed > 0 {
		w.cfg.Logger.Info("sub-agents that never began were removed", "count", removed)
	}
	return more, err
}
