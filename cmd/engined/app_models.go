package main

import (
	"fmt"

	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/tokens"
)

// softShare of the threshold is where drafts of the coming compaction are worth
// making.
const softShare = 0.8

// policy is the settings' word on compactions.
func policy(cfg config.Config) compact.Policy {
	return compact.Policy{
		Threshold: cfg.CompactionThreshold, SoftThreshold: softShare * cfg.CompactionThreshold,
		TargetShare: cfg.CompactionTarget, TailShare: cfg.CompactionTail,
	}.Fitted()
}

// modelRules is the settings' word on models, whose policies hold.
func modelRules(cfg config.Config) (engine.Models, error) {
	if err := policy(cfg).Validate(); err != nil {
		return nil, err
	}
	var out engine.Models
	for _, w := range cfg.ModelWindows() {
		if w.Threshold > 0 {
			if err := policy(cfg).At(w.Threshold, w.Soft).Validate(); err != nil {
				return nil, fmt.Errorf("model-windows: %s: %w", w.Pattern, err)
			}
		}
		out = append(out, engine.ModelWindow(w))
	}
	return out, nil
}

// debtMilli tells the store the thresholds: the general one, and each model's.
func debtMilli(cfg config.Config) (general int64, of func(model string) int64) {
	list := make(engine.Models, 0, len(cfg.ModelWindowList))
	for _, w := range cfg.ModelWindows() {
		list = append(list, engine.ModelWindow(w))
	}
	return milli(cfg.CompactionThreshold), func(model string) int64 {
		return milli(list.Policy(policy(cfg), model).Threshold)
	}
}

// softMilli is where the first of all models may be worth preparing for, before
// its factor is learned; each session's own soft threshold is held against it when
// its drafts are planned.
func (a *App) softMilli() int64 {
	list, err := modelRules(a.cfg)
	if err != nil {
		list = nil
	}
	return milli(list.LeastSoft(policy(a.cfg))) * 1000 / int64(tokens.Prior("claude"))
}

func milli(share float64) int64 { return int64(share*1000 + 0.5) }
