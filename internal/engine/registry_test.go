package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

func TestRegistrationsAreRefusedAsValues(t *testing.T) {
	t.Parallel()
	ok := always(named("x"))
	for name, tc := range map[string]struct {
		reg      engine.Registration
		existing string
		says     string
	}{
		"blank owner":           {engine.Registration{ID: "x", Owner: " \t", Factory: ok}, "", "owner is blank"},
		"blank id":              {engine.Registration{ID: " ", Owner: "o", Factory: ok}, "", "id is blank"},
		"no factory":            {engine.Registration{ID: "x", Owner: "o"}, "", "no factory"},
		"default id, not core":  {engine.Registration{ID: engine.LegacyID, Owner: "o", Factory: ok, Refresh: true}, engine.CoreOwner, "reserved"},
		"another owner's id":    {engine.Registration{ID: "acme", Owner: "o", Factory: ok, Refresh: true}, "remote:acme", "already registered"},
		"core takes no other's": {engine.Registration{ID: "acme", Owner: engine.CoreOwner, Factory: ok, Refresh: true}, "remote:acme", "already registered"},
		"refresh not asked for": {engine.Registration{ID: "acme", Owner: "remote:acme", Factory: ok}, "remote:acme", "refresh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deskOf(t, named("acme"))
			err := d.Register(tc.reg)
			var refused *engine.RegistrationError
			if !errors.As(err, &refused) || refused.ExistingOwner != tc.existing || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("refused with %v, existing owner %+v", err, refused)
			}
			if got := who(t, d.slot); got != "acme" {
				t.Errorf("%s serves after a refused registration", got)
			}
		})
	}
}

func TestSameOwnerRefreshReplacesTheEngine(t *testing.T) {
	t.Parallel()
	first := disposable{named("first")}
	d := deskOf(t, first)
	if got := who(t, d.slot); got != "first" {
		t.Fatalf("%s serves", got)
	}
	d.register(t, engine.Registration{ID: "acme", Owner: "remote:acme", Factory: always(named("second")), Refresh: true})
	if got := who(t, d.slot); got != "second" {
		t.Errorf("%s serves after a refresh", got)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.ends() != 1 {
		t.Errorf("the replaced engine was disposed of %d times", first.ends())
	}
}

func TestRegistrationClearsTheQuarantine(t *testing.T) {
	t.Parallel()
	broken := named("broken")
	broken.does(func(context.Context, engine.Operation) error { return errors.New("no") })
	d := deskOf(t, broken)
	if got := who(t, d.slot); got != engine.LegacyID {
		t.Fatalf("%s serves", got)
	}
	d.aside(t)
	if err := d.Register(engine.Registration{ID: "acme", Owner: "remote:acme", Factory: always(named("x"))}); err == nil {
		t.Fatal("a refresh that was not asked for is taken")
	}
	d.aside(t) // a refused registration clears nothing
	d.register(t, engine.Registration{ID: "acme", Owner: "remote:acme", Factory: always(named("mended")), Refresh: true})
	d.noneAside(t)
	if got := who(t, d.slot); got != "mended" {
		t.Errorf("%s serves after the registration", got)
	}
}

func TestAnOperatorClearsTheQuarantine(t *testing.T) {
	t.Parallel()
	made := 0
	d := deskOf(t, nil, func(r *engine.Registration) {
		r.Factory = func(context.Context) (contextengine.Engine, error) {
			made++
			if made == 1 {
				return nil, errors.New("not yet")
			}
			return named("acme"), nil
		}
	})
	for range 3 { // there is no second try until somebody asks for it
		if got := who(t, d.slot); got != engine.LegacyID {
			t.Fatalf("%s serves", got)
		}
	}
	if d.ClearQuarantine("other") || !d.ClearQuarantine("acme") || d.ClearQuarantine("acme") {
		t.Error("clearing tells something else than whether it was set aside")
	}
	if got := who(t, d.slot); got != "acme" || made != 2 {
		t.Errorf("%s serves, made %d times", got, made)
	}
}

func TestF007UnsetSlotIsTheDefault(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("acme"))
	for _, setting := range []string{"", "none", engine.LegacyID} {
		if got := who(t, d.Slot(setting)); got != engine.LegacyID {
			t.Errorf("slot %q is served by %s", setting, got)
		}
	}
	d.noneAside(t)
}

func TestF008EngineIDMayDifferFromItsOwner(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("inner"), func(r *engine.Registration) { r.ID, r.Owner = "outer", "remote:acme" })
	r, err := d.slot.Resolve(t.Context())
	if err != nil || r.Serving != "outer" || r.Owner != "remote:acme" || r.Info.ID != "inner" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestF009EngineIDsAreCaseExact(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("acme"))
	for _, setting := range []string{"Acme", "acme ", "None", "LEGACY"} {
		if got := who(t, d.Slot(setting)); got != engine.LegacyID {
			t.Errorf("slot %q is served by %s", setting, got)
		}
	}
	if n := len(d.Quarantines()); n != 4 {
		t.Errorf("%d of 4 unknown ids are told of", n)
	}
	if got := who(t, d.slot); got != "acme" {
		t.Errorf("%s serves", got)
	}
}

func TestF011MissingEngineIsSetAsideAtResolve(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("acme"))
	r, err := d.Slot("missing").Resolve(t.Context())
	if err != nil || r.Serving != engine.LegacyID || r.ID != "missing" {
		t.Fatalf("%+v, %v", r, err)
	}
	want := engine.Quarantine{EngineID: "missing", Operation: engine.OpResolve, Reason: "not registered", FailedAt: began}
	if diff := cmp.Diff(&want, r.Quarantine); diff != "" {
		t.Error(diff)
	}
	d.register(t, engine.Registration{ID: "missing", Owner: "late", Factory: always(named("missing"))})
	if got := who(t, d.Slot("missing")); got != "missing" {
		t.Errorf("%s serves once it is registered", got)
	}
}

func TestF012BrokenFactoriesAreSetAside(t *testing.T) {
	t.Parallel()
	type nilEngine struct{ contextengine.Engine }
	for name, tc := range map[string]struct {
		factory engine.Factory
		op      engine.Operation
		reason  string
	}{
		"error":     {func(context.Context) (contextengine.Engine, error) { return nil, errors.New("no\n route") }, engine.OpFactory, "no route"},
		"panic":     {func(context.Context) (contextengine.Engine, error) { panic("oh") }, engine.OpFactory, "panic: oh"},
		"no engine": {always(nil), engine.OpValidate, "no engine"},
		"nil inside": {
			always(nilEngine{}), engine.OpValidate, "panic: ",
		},
		"blank id":   {always(&bare{info: contextengine.Info{ID: " ", Name: "n"}}), engine.OpValidate, "lacks info.id"},
		"blank name": {always(&bare{info: contextengine.Info{ID: "acme"}}), engine.OpValidate, "lacks info.name"},
		"neither":    {always(&bare{}), engine.OpValidate, "lacks info.id, info.name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deskOf(t, nil, func(r *engine.Registration) { r.Factory = tc.factory })
			if got := who(t, d.slot); got != engine.LegacyID {
				t.Errorf("%s serves", got)
			}
			if q := d.aside(t); q.Operation != tc.op || !strings.Contains(q.Reason, tc.reason) || q.Owner != "remote:acme" || q.EngineID != "acme" {
				t.Errorf("%+v", q)
			}
		})
	}
}

func TestAnEngineThatIsNotTakenIsDisposedOf(t *testing.T) {
	t.Parallel()
	nameless := disposable{&bare{info: contextengine.Info{ID: "acme"}}}
	d := deskOf(t, nameless)
	if got := who(t, d.slot); got != engine.LegacyID {
		t.Errorf("%s serves", got)
	}
	if err := d.Close(t.Context()); err != nil || nameless.ends() != 1 {
		t.Errorf("%v, disposed of %d times", err, nameless.ends())
	}
}

func TestF016FactoryIsCalledOnceOverManyCalls(t *testing.T) {
	t.Parallel()
	made := 0
	d := deskOf(t, nil, func(r *engine.Registration) {
		r.Factory = func(context.Context) (contextengine.Engine, error) {
			made++
			return nil, errors.New("no")
		}
	})
	for range 5 {
		if got := who(t, d.slot); got != engine.LegacyID {
			t.Fatalf("%s serves", got)
		}
	}
	if d.aside(t); made != 1 {
		t.Errorf("made %d times", made)
	}
}

func TestF017AbortWhileTheEngineIsMade(t *testing.T) {
	t.Parallel()
	reason := errors.New("the user pressed stop")
	begun, finish := make(chan struct{}), make(chan struct{})
	made := 0
	d := deskOf(t, nil, func(r *engine.Registration) {
		r.Factory = func(context.Context) (contextengine.Engine, error) {
			made++
			close(begun)
			<-finish
			return named("acme"), nil
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(reason)
	}()
	_, err := d.slot.Assemble(ctx, contextengine.AssembleParams{Session: on("s")})
	if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	d.noneAside(t)
	if calls := d.fallback.calls(); len(calls) != 0 {
		t.Errorf("the default engine answers an aborted call: %v", calls)
	}
	close(finish)
	if got := who(t, d.slot); got != "acme" || made != 1 {
		t.Errorf("%s serves, made %d times", got, made)
	}
}

func TestEnginesAreListedWithTheirOwners(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("acme"), func(r *engine.Registration) { r.Info = contextengine.Info{Name: "not made yet"} })
	names := func() (out []string) {
		for _, s := range d.Engines() {
			out = append(out, s.Info.ID+" "+s.Owner+" "+s.Info.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"acme remote:acme not made yet", "legacy core "}, names()); diff != "" {
		t.Error(diff)
	}
	who(t, d.slot)
	if diff := cmp.Diff([]string{"acme remote:acme engine acme", "legacy core "}, names()); diff != "" {
		t.Error(diff)
	}
}
