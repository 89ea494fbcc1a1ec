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

// modelsOf is the settings' word on models.
func modelsOf(cfg config.Config) engine.Models {
	var out engine.Models
	for _, w := range cfg.ModelWindows() {
		out = append(out, engine.ModelWindow(w))
	}
	return out
}

// checkPolicies refuses thresholds that cannot be held to, the general one and
// those of models.
func checkPolicies(cfg config.Config) error {
	if err := policy(cfg).Validate(); err != nil {
		return err
	}
	for _, w := range modelsOf(cfg) {
		if w.Threshold > 0 {
			if err := policy(cfg).At(w.Threshold, w.Soft).Validate(); err != nil {
				return fmt.Errorf("model-windows: %s: %w", w.Pattern, err)
			}
		}
	}
	return nil
}

// debtMilli tells the store the thresholds: the general one, and each model's.
func debtMilli(cfg config.Config) (general int64, of func(model string) int64) {
	list := modelsOf(cfg)
	return milli(cfg.CompactionThreshold), func(model string) int64 {
		return milli(list.Policy(policy(cfg), model).Threshold)
	}
}

// softMilli is where the first of all models may be worth preparing for, before
// its factor is learned; each session's own soft threshold is held against it when
// its drafts are planned.
func softMilli(cfg config.Config) int64 {
	return milli(modelsOf(cfg).LeastSoft(policy(cfg))) * 1000 / int64(tokens.Prior("claude"))
}

func milli(share float64) int64 { return int64(share*1000 + 0.5) }
