package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/engined/engined/contextengine"
)

// CoreOwner owns the built-in engines. Only it may own the default one.
const CoreOwner = "core"

// Factory makes an instance of an engine, within the context's deadline. The
// context ends with the making; the instance lives on until it is disposed of.
// The same engine may be returned more than once.
type Factory func(ctx context.Context) (contextengine.Engine, error)

// Registration offers an engine under an id.
type Registration struct {
	// ID is what the slot names, compared byte for byte.
	ID string
	// Owner is who offers it: CoreOwner, or whatever else the program calls
	// its sources of engines, such as "remote:acme".
	Owner   string
	Factory Factory
	// Shared leaves the disposal of instances to whoever made them.
	Shared bool
	// Refresh replaces a registration of the same owner.
	Refresh bool
	// Deadlines are the engine's own; what they leave open is the registry's.
	Deadlines Deadlines
	// Info is what listings show until the engine has first been made.
	Info contextengine.Info
}

// RegistrationError refuses a registration.
type RegistrationError struct {
	ID, Owner string
	// ExistingOwner is whose the id is; empty where that is not the reason.
	ExistingOwner string
	Reason        string
}

func (e *RegistrationError) Error() string {
	return fmt.Sprintf("register context engine %q for owner %q: %s", e.ID, e.Owner, e.Reason)
}

// RegistryConfig configures a registry. The zero value serves.
type RegistryConfig struct {
	Deadlines Deadlines
	Now       func() time.Time
	Logger    *slog.Logger
}

// Registry knows the engines of one process, who offers them and which of them
// are set aside.
type Registry struct {
	cfg      RegistryConfig
	fallback *mount

	mu          sync.Mutex
	generation  uint64
	entries     map[string]entry
	quarantines map[string]Quarantine
	mounts      map[string]*mount

	abandoned atomic.Int64
	retiring  sync.WaitGroup
}

// entry is a registration and its age. What an instance of another generation
// does wrong is not held against it.
type entry struct {
	Registration
	generation uint64
}

// NewRegistry makes a registry. The default engine, LegacyID, has to be
// registered by CoreOwner before a slot serves.
func NewRegistry(cfg RegistryConfig) *Registry {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("component", "engines")
	r := &Registry{
		cfg: cfg, entries: make(map[string]entry), quarantines: make(map[string]Quarantine), mounts: make(map[string]*mount),
	}
	r.fallback = &mount{reg: r, id: LegacyID, standing: true}
	r.mounts[LegacyID] = r.fallback
	return r
}

// Register offers an engine. An error is a *RegistrationError and changes
// nothing; success clears the id's quarantine and has the next call make a new
// instance.
func (r *Registry) Register(reg Registration) error {
	refuse := func(existing, reason string) error {
		return &RegistrationError{ID: reg.ID, Owner: reg.Owner, ExistingOwner: existing, Reason: reason}
	}
	switch {
	case strings.TrimSpace(reg.ID) == "":
		return refuse("", "the id is blank")
	case strings.TrimSpace(reg.Owner) == "":
		return refuse("", "the owner is blank")
	case reg.Factory == nil:
		return refuse("", "there is no factory")
	case reg.ID == LegacyID && reg.Owner != CoreOwner:
		return refuse(CoreOwner, "the id is reserved by "+CoreOwner)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.entries[reg.ID]; ok {
		switch {
		case was.Owner != reg.Owner:
			return refuse(was.Owner, fmt.Sprintf("the id is already registered by %q", was.Owner))
		case !reg.Refresh:
			return refuse(was.Owner, "the id is already registered; a refresh has to be asked for")
		}
	}
	r.generation++
	r.entries[reg.ID] = entry{reg, r.generation}
	delete(r.quarantines, reg.ID)
	return nil
}

// SlotID is the id that a setting of the slot means: "" and "none" are the
// default engine. Ids are case-sensitive.
func SlotID(setting string) string {
	if setting == "" || setting == "none" {
		return LegacyID
	}
	return setting
}

// Slot is the exclusive slot, served by the engine that the setting names.
// Whatever is wrong with that engine shows when it is first used, and costs no
// call.
func (r *Registry) Slot(setting string) *Guard {
	id := SlotID(setting)
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.mounts[id]
	if !ok {
		m = &mount{reg: r, id: id}
		r.mounts[id] = m
	}
	return &Guard{reg: r, mount: m}
}

// Status is a registered engine as operators see it.
type Status struct {
	Info       contextengine.Info
	Owner      string
	Quarantine *Quarantine
}

// Engines lists the registered engines by id. The info of one that has served
// is its own, under the id that it is registered with.
func (r *Registry) Engines() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Status, 0, len(r.entries))
	for _, id := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[id]
		s := Status{Info: e.Info, Owner: e.Owner}
		if m := r.mounts[id]; m != nil {
			if info, ok := m.made(); ok {
				s.Info = info
			}
		}
		s.Info.ID = id
		if q, ok := r.quarantines[id]; ok {
			s.Quarantine = &q
		}
		out = append(out, s)
	}
	return out
}

// Abandoned counts the calls that were given up and have not ended yet.
func (r *Registry) Abandoned() int { return int(r.abandoned.Load()) }

// Close disposes of every instance, each within its deadline and all of them
// within ctx. No slot serves afterwards.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	mounts := slices.Collect(maps.Values(r.mounts))
	r.mu.Unlock()
	for _, m := range mounts {
		m.close()
	}
	done := make(chan struct{})
	go func() {
		r.retiring.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("dispose of engines: %w", ctx.Err())
	}
}

// lookup is what a mount needs to know before a call.
func (r *Registry) lookup(id string) (e entry, known, quarantined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known = r.entries[id]
	_, quarantined = r.quarantines[id]
	return e, known, quarantined
}
