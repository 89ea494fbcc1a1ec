package remote_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

// family is an engine that knows its children by name.
type family struct {
	recorder
	children []string
	fail     error
}

func (f *family) PrepareSubagentSpawn(_ context.Context, p contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	if p.ChildSessionKey == "nothing" {
		return nil, nil
	}
	child := p.Tenant + "/" + p.SessionKey + "/" + p.ChildSessionKey
	f.children = append(f.children, child)
	return &contextengine.SubagentPreparation{PreparationID: "p", Rollback: func(context.Context) error {
		if f.fail != nil {
			return f.fail
		}
		f.children = slices.DeleteFunc(f.children, func(c string) bool { return c == child })
		return nil
	}}, nil
}

func (f *family) OnSubagentEnded(_ context.Context, p contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	return contextengine.SubagentEndedResult{Ended: slices.Contains(f.children, p.Tenant+"/"+p.SessionKey+"/"+p.ChildSessionKey)}, nil
}

func TestSubagentsArePreparedRolledBackAndEnded(t *testing.T) {
	t.Parallel()
	f := &family{}
	c := serve(t, f, remote.HandlerOptions{})
	ctx := t.Context()
	for _, key := range []string{"agent:a:subagent:1", "a/b", "..", "%2F"} {
		parent := contextengine.Session{Tenant: "t", SessionKey: "../" + key}
		p, err := c.PrepareSubagentSpawn(ctx, contextengine.PrepareSubagentSpawnParams{Session: parent, ChildSessionKey: key, ContextMode: contextengine.ContextFork})
		if err != nil || p == nil || p.PreparationID != "p" || len(f.children) != 1 {
			t.Fatalf("%q: %+v %v, children %q", key, p, err, f.children)
		}
		ended, err := c.OnSubagentEnded(ctx, contextengine.SubagentEndedParams{Session: parent, ChildSessionKey: key, Reason: contextengine.SubagentCompleted})
		if err != nil || !ended.Ended {
			t.Errorf("%q: %+v %v", key, ended, err)
		}
		f.fail = contextengine.ErrSessionErased
		if err := p.Rollback(ctx); !errors.Is(err, f.fail) || len(f.children) != 1 {
			t.Errorf("%q: a failing rollback: %v", key, err)
		}
		f.fail = nil
		for range 2 { // the second finds nothing
			if err := p.Rollback(ctx); err != nil || len(f.children) != 0 {
				t.Errorf("%q: rollback: %v, children %q", key, err, f.children)
			}
		}
	}
	if p, err := c.PrepareSubagentSpawn(ctx, contextengine.PrepareSubagentSpawnParams{Session: on("k"), ChildSessionKey: "nothing"}); p != nil || err != nil {
		t.Errorf("nothing to prepare: %+v %v", p, err)
	}
	var invalid *contextengine.InvalidError
	if _, err := c.PrepareSubagentSpawn(ctx, contextengine.PrepareSubagentSpawnParams{Session: on("k"), ChildSessionKey: "x", ContextMode: "half"}); !errors.As(err, &invalid) {
		t.Errorf("odd mode: %v", err)
	}
	if _, err := c.OnSubagentEnded(ctx, contextengine.SubagentEndedParams{Session: on("k"), ChildSessionKey: "x", Reason: "bored"}); !errors.As(err, &invalid) {
		t.Errorf("odd reason: %v", err)
	}
}

func TestAnEngineWithoutSubagentsKeepsNoneFromStarting(t *testing.T) {
	t.Parallel()
	c := serve(t, bare{&recorder{}}, remote.HandlerOptions{})
	p, err := c.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{Session: on("k"), ChildSessionKey: "c"})
	if p != nil || err != nil {
		t.Errorf("%+v %v", p, err)
	}
	ended, err := c.OnSubagentEnded(t.Context(), contextengine.SubagentEndedParams{ChildSessionKey: "c", Reason: contextengine.SubagentSwept})
	if ended.Ended || err != nil {
		t.Errorf("%+v %v", ended, err)
	}
}
