package main

import (
	"time"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

// aside is how a command that talks to Postgres itself connects: beside nodes,
// which have the connections.
func aside(cfg config.Config, command string) store.Config {
	return store.Config{
		URL: cfg.DatabaseURL, MaxConns: 2, PgBouncer: cfg.PgBouncer, StatementTimeout: cfg.StatementTimeout,
		ApplicationName: "engined-" + command,
	}
}

// pace is how often a long run says how far it is.
const pace = 5 * time.Second

// paced tells, each time it is asked, whether it is time to say so again.
func (c *cli) paced() func() bool {
	said := c.now()
	return func() bool {
		now := c.now()
		if now.Sub(said) <= pace {
			return false
		}
		said = now
		return true
	}
}
