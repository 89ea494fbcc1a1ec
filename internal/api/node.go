package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/engined/engined/contextengine"
)

// EngineList is what is registered on the answering node.
type EngineList struct {
	// Serving is who answers: the engine in the slot, or the default one.
	Serving string `json:"serving,omitempty"`
	// DefaultTokenBudget counts where neither call, session nor model has one.
	DefaultTokenBudget int            `json:"defaultTokenBudget,omitempty"`
	Engines            []EngineStatus `json:"engines"`
	Quarantines        []Quarantine   `json:"quarantines"`
}

// QuarantineCleared is false where the engine was not set aside.
type QuarantineCleared struct {
	Cleared bool `json:"cleared"`
}

// Readiness is what a ready node answers.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// Liveness is what a live node answers.
type Liveness struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

func nodeOperations() []*operation {
	engines := get("/v1/engines", "listEngines", tagNode, "List the engines of this node", func(c *call) error {
		list := c.api.cfg.Engines()
		list.Engines = append([]EngineStatus{}, list.Engines...)
		list.Quarantines = append([]Quarantine{}, list.Quarantines...)
		return c.answer(list)
	})
	engines.answer = of[EngineList]()

	clearing := &operation{
		method: http.MethodDelete, path: "/v1/engines/{engine}/quarantine", id: "clearQuarantine", tag: tagNode,
		summary: "Give an engine another chance on this node", serve: serveClearQuarantine,
	}
	clearing.description = "The next call makes a new instance of it. Clearing what is not set aside is no error."
	clearing.answer = of[QuarantineCleared]()

	own := get("/v1/engine", "describeEngine", tagNode, "Say which engine serves", func(c *call) error {
		return c.answer(c.api.cfg.Engine.Info())
	})
	own.description = "What a host asks before it takes this node for a remote engine."
	own.answer = of[contextengine.Info]()

	live := get("/healthz", "health", tagNode, "Tell that the process lives", func(c *call) error {
		return c.answer(Liveness{Status: "ok", Version: c.api.cfg.Version})
	})
	live.answer, live.public = of[Liveness](), true

	ready := get("/readyz", "ready", tagNode, "Tell whether the node can serve, and what is missing", serveReady)
	ready.answer, ready.public, ready.refusals = of[Readiness](), true, []kind{kindNotReady}

	metrics := get("/metrics", "metrics", tagNode, "Read the node's metrics in the Prometheus format", func(c *call) error {
		c.api.scrape.ServeHTTP(&c.w, c.r)
		return nil
	})
	metrics.public, metrics.media = true, "text/plain"
	return []*operation{engines, clearing, own, live, ready, metrics}
}

func serveClearQuarantine(c *call) error {
	return c.answer(QuarantineCleared{Cleared: c.api.cfg.ClearQuarantine(c.r.PathValue("engine"))})
}

// readyTimeout is the longest that a prober is kept waiting.
const readyTimeout = 3 * time.Second

func serveReady(c *call) error {
	ctx, cancel := context.WithTimeout(c.ctx, readyTimeout)
	defer cancel()
	checks := append([]Check{}, c.api.cfg.Ready(ctx)...)
	select {
	case <-c.api.draining:
		checks = append(checks, Check{Name: "node", Required: true, Detail: "draining"})
	default:
	}
	var missing []string
	for _, k := range checks {
		if !k.OK && k.Required {
			missing = append(missing, k.Name)
		}
	}
	if len(missing) == 0 {
		return c.answer(Readiness{Ready: true, Checks: checks})
	}
	p := kindNotReady.problem("not ready: " + strings.Join(missing, ", ")).retry(1)
	p.Checks = checks
	return p
}

// ownPages are what the API serves about itself: they are not in its document.
func (a *API) ownPages(doc []byte) []*operation {
	page := sync.OnceValue(func() []byte { return docsPage(doc) })
	pages := []*operation{
		get("/openapi.json", "", "", "", func(c *call) error {
			return c.send(doc)
		}),
		get("/docs", "", "", "", func(c *call) error {
			c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
			c.w.Header()["Content-Security-Policy"] = pagePolicy
			return c.send(page())
		}),
		get("/{$}", "", "", "", func(c *call) error {
			if a.cfg.Console != nil {
				http.Redirect(&c.w, c.r, "/console/", http.StatusTemporaryRedirect)
				return nil
			}
			http.Redirect(&c.w, c.r, "/docs", http.StatusTemporaryRedirect)
			return nil
		}),
	}
	for _, p := range pages {
		p.public = true
	}
	return pages
}
