package main

import (
	"log/slog"

	"github.com/engined/engined/internal/config"
)

// logger writes to stderr what the settings ask for.
func (c *cli) logger(cfg config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // the settings hold a known word
	opts := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.err, opts))
	}
	return slog.New(slog.NewTextHandler(c.err, opts))
}
