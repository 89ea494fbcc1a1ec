// Package summarizers puts together whom a compaction asks for summaries: the
// configured models behind the gate that all workers share, for one tenant and
// session.
package summarizers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/anthropic"
	"github.com/engined/engined/internal/compact/summarize/chain"
	"github.com/engined/engined/internal/compact/summarize/hosted"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/compact/summarize/openai"
	"github.com/engined/engined/internal/compact/summarize/redact"
	"github.com/engined/engined/internal/store"
)

// Kind says how a summarizer is reached.
type Kind string

// The kinds.
const (
	OpenAI     Kind = "openai"
	Anthropic  Kind = "anthropic"
	Host       Kind = "host"
	Extractive Kind = "extractive"
)

// Spec is one configured summarizer.
type Spec struct {
	Name  string
	Kind  Kind
	Model string
	// URL is empty for the provider's own; Key empty for none.
	URL, Key string
	Price    llm.Price
	// DailyLimit is in US dollars a tenant and day; 0 for none.
	DailyLimit float64
}

// Store is what workers share.
type Store interface {
	EnterGate(ctx context.Context, tenant, summarizer string, limits store.SpendLimits, p store.GatePolicy) (store.GateState, error)
	LeaveGate(ctx context.Context, tenant, summarizer string, spent store.Spend, f *store.GateFailure, p store.GatePolicy) error
	AskHost(ctx context.Context, q store.Question) (uuid.UUID, error)
	HostJob(ctx context.Context, tenant string, id uuid.UUID) (store.HostJobState, error)
	DropHostJob(ctx context.Context, tenant string, id uuid.UUID) error
}

// Config is what New needs.
type Config struct {
	// Specs are asked in this order; with none the extractive one writes.
	Specs []Spec
	// Tenants names the summarizers of single tenants; others use all.
	Tenants map[string][]string
	Store   Store
	Redact  redact.Redactor
	Gate    store.GatePolicy
	// TenantLimit is in US dollars a tenant and day over all summarizers with a
	// price, where nothing else is set for the tenant; 0 for none.
	TenantLimit float64
	// Timeout bounds one question, Idle the silence of a model, Lease the wait for
	// a gateway.
	Timeout, Idle, Lease time.Duration
}

// Set hands out summarizers. It is safe for concurrent use.
type Set struct {
	cfg     Config
	clients map[string]llm.Client // of the kinds that need no session
	limits  map[string]store.SpendLimits
}

// New makes a set.
func New(cfg Config) (*Set, error) {
	s := &Set{cfg: cfg, clients: map[string]llm.Client{}, limits: map[string]store.SpendLimits{}}
	for _, spec := range cfg.Specs {
		s.limits[spec.Name] = store.SpendLimits{
			SummarizerMicros: Micros(spec.DailyLimit), TenantMicros: Micros(cfg.TenantLimit), Free: spec.Price == (llm.Price{}),
		}
		switch spec.Kind {
		case OpenAI:
			s.clients[spec.Name] = openai.New(openai.Config{URL: spec.URL, Key: spec.Key, Model: spec.Model, Idle: cfg.Idle})
		case Anthropic:
			s.clients[spec.Name] = anthropic.New(anthropic.Config{URL: spec.URL, Key: spec.Key, Model: spec.Model, Idle: cfg.Idle})
		case Host, Extractive:
		default:
			return nil, fmt.Errorf("summarizer %s: unknown kind %q", spec.Name, spec.Kind)
		}
	}
	return s, nil
}

// Micros are millionths of a US dollar.
func Micros(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

// For is whom to ask for a session's summaries. lastResort lets the extractive
// summarizer write what no model would.
func (s *Set) For(tenant string, sid uuid.UUID, lastResort bool) summarize.Summarizer {
	specs := s.Specs(tenant)
	if len(specs) == 0 {
		return summarize.Extractive{}
	}
	c := &chain.Chain{Tenant: tenant, Gate: gate{s}, LastResort: lastResort}
	for _, spec := range specs {
		c.Members = append(c.Members, s.member(spec, tenant, sid))
	}
	if len(specs) == 1 && specs[0].Kind == Extractive {
		return summarize.Extractive{}
	}
	return c
}

// Specs are a tenant's summarizers, in their order.
func (s *Set) Specs(tenant string) []Spec {
	names, chosen := s.cfg.Tenants[tenant]
	if !chosen {
		return s.cfg.Specs
	}
	var out []Spec
	for _, n := range names {
		if i := slices.IndexFunc(s.cfg.Specs, func(x Spec) bool { return x.Name == n }); i >= 0 {
			out = append(out, s.cfg.Specs[i])
		}
	}
	return out
}

func (s *Set) member(spec Spec, tenant string, sid uuid.UUID) summarize.Summarizer {
	if spec.Kind == Extractive {
		return summarize.Extractive{}
	}
	client := s.clients[spec.Name]
	if spec.Kind == Host {
		client = &hosted.Client{
			Board:     board{store: s.cfg.Store, tenant: tenant, sid: sid, summarizer: spec.Name},
			ModelName: spec.Model, Lease: s.cfg.Lease, Timeout: s.cfg.Timeout,
		}
	}
	return &llm.Summarizer{ID: spec.Name, Client: client, Redact: s.cfg.Redact, Price: spec.Price, Timeout: s.cfg.Timeout}
}

// Cost is what a plan's calls would cost a tenant with the first of its
// summarizers, in millionths of a US dollar; 0 where no price is known.
func (s *Set) Cost(tenant string, inputTokens, outputTokens int64) int64 {
	specs := s.Specs(tenant)
	if len(specs) == 0 {
		return 0
	}
	return specs[0].Price.Micros(inputTokens, outputTokens)
}
