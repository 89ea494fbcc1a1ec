package engine

import (
	"fmt"
	"sort"

	"github.com/engined/engined/contextengine"
)

// Full is an engine with every call that the service offers.
type Full interface {
	contextengine.Engine
	contextengine.Bootstrapper
	contextengine.BatchIngester
	contextengine.TurnCommitter
	contextengine.AfterTurner
	contextengine.Maintainer
	contextengine.Disposer
}

// Slot holds the one engine that serves, chosen by id at start.
type Slot struct {
	active Full
	ids    []string
}

// NewSlot picks the engine with an id out of those that there are. "" and
// "none" mean the default engine, legacy.
func NewSlot(id string, engines ...Full) (*Slot, error) {
	if id == "" || id == "none" {
		id = LegacyID
	}
	s := &Slot{}
	for _, e := range engines {
		s.ids = append(s.ids, e.Info().ID)
		if e.Info().ID == id {
			s.active = e
		}
	}
	sort.Strings(s.ids)
	if s.active == nil {
		return nil, fmt.Errorf("no context engine %q; there are %v", id, s.ids)
	}
	return s, nil
}

// Active is the engine that serves.
func (s *Slot) Active() Full { return s.active }

// IDs are the ids of all engines, sorted.
func (s *Slot) IDs() []string { return s.ids }
