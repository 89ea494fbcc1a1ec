package api

import (
	"time"

	"github.com/engined/engined/internal/store"
)

// Lineage is of whom a session descends, and who descends from it.
type Lineage struct {
	// Parent is null for a session that began by itself.
	Parent *Relative `json:"parent"`
	// Children are those that descend directly, newest first, at most 100.
	Children []Relative `json:"children"`
}

// Relative is the other end of a descent.
type Relative struct {
	// SessionKey is absent for a parent that was erased.
	SessionKey string `json:"sessionKey,omitempty"`
	Kind       string `json:"kind" enum:"fork,subagent"`
	// ContextMode is a sub-agent's.
	ContextMode string `json:"contextMode,omitempty" enum:"isolated,fork"`
	// AtSeq was the parent's head at the point of descent.
	AtSeq         int64      `json:"atSeq"`
	PreparationID string     `json:"preparationId,omitempty"`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
	EndReason     string     `json:"endReason,omitempty"`
	EndedAt       *time.Time `json:"endedAt,omitempty"`
	CreatedAt     time.Time  `json:"createdAt"`
}

// shownChildren is how many children a session shows.
const shownChildren = 100

func relativeOf(key string, d *store.Descent) Relative {
	r := Relative{
		SessionKey: key, Kind: "fork", AtSeq: d.ParentSeq, PreparationID: d.PreparationID, EndReason: d.EndReason,
		CreatedAt: d.CreatedAt,
	}
	switch d.Kind {
	case store.KindIsolated:
		r.Kind, r.ContextMode = "subagent", "isolated"
	case store.KindForkedSubagent:
		r.Kind, r.ContextMode = "subagent", "fork"
	case store.KindFork:
	}
	if !d.ExpiresAt.IsZero() {
		r.ExpiresAt = &d.ExpiresAt
	}
	if !d.EndedAt.IsZero() {
		r.EndedAt = &d.EndedAt
	}
	return r
}

func (c *call) lineage(s *store.Session) (Lineage, error) {
	out := Lineage{Children: []Relative{}}
	d, descends, err := c.api.cfg.Log.DescentOf(c.ctx, c.tenant, s.SID, s.Key)
	if err != nil {
		return out, err
	}
	if descends {
		parent := relativeOf(d.ParentKey, &d)
		out.Parent = &parent
	}
	children, err := c.api.cfg.Log.Children(c.ctx, c.tenant, s.SID, shownChildren)
	if err != nil {
		return out, err
	}
	for i := range children {
		out.Children = append(out.Children, relativeOf(children[i].SessionKey, &children[i]))
	}
	return out, nil
}
