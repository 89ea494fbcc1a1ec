package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

// odd are messages whose bytes a careless codec would change.
var odd = []string{
	`{}`, `{"role":"user","content":"<b>&amp;</b>"}`, `{"b":1,"a":2,"b":3}`, `{ "role" : "user" , "n": 1.000e+02, "big":12345678901234567890123 }`,
	`{"content":"\u0000 \ud99c \uD83E\uDD9E \/ \u003c"}`, "{\n\t\"content\": \"é \u2028 \u2029 🦞\"\n}", `{"":{"":[[],{}," ]}{[ \\\" "]}}`,
	`{"data":"` + strings.Repeat("QUJD", 2000) + `"}`, `{"n":-0,"f":1E5,"deep":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
}

type source struct{ *rapid.T }

func (s source) messages(least int) []json.RawMessage {
	n := rapid.IntRange(least, 5).Draw(s.T, "messages")
	if n == 0 && rapid.Bool().Draw(s.T, "nil") {
		return nil
	}
	out := []json.RawMessage{}
	for range n {
		out = append(out, s.message())
	}
	return out
}

func (s source) message() json.RawMessage {
	if rapid.Bool().Draw(s.T, "odd") {
		return json.RawMessage(rapid.SampledFrom(odd).Draw(s.T, "message"))
	}
	b, err := json.Marshal(map[string]string{"role": "user", "content": s.text()})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s source) text() string {
	return rapid.SampledFrom([]string{"", "a", "<>&\u2028", "\x00\x1f\"\\", "🦞é", "100%/../?#"}).Draw(s.T, "text")
}

func (s source) number() *int {
	if rapid.Bool().Draw(s.T, "none") {
		return nil
	}
	n := rapid.IntRange(-1, 1<<40).Draw(s.T, "number")
	return &n
}

func (s source) seq() *int64 {
	if n := s.number(); n != nil {
		seq := int64(*n)
		return &seq
	}
	return nil
}

func (s source) session() contextengine.Session {
	return contextengine.Session{
		Tenant: rapid.SampledFrom([]string{"", "t", "a b/ü%"}).Draw(s.T, "tenant"), SessionKey: rapid.SampledFrom(keys).Draw(s.T, "key"),
		SessionID: s.text(), GatewayID: s.text(),
	}
}

func (s source) expectations() contextengine.Expectations {
	return contextengine.Expectations{ExpectedHead: s.seq(), ExpectedEpoch: s.seq()}
}

func (s source) runtime() *contextengine.RuntimeContext {
	if rapid.Bool().Draw(s.T, "no runtime") {
		return nil
	}
	return &contextengine.RuntimeContext{Provider: s.text(), ModelID: s.text(), TokenBudget: s.number(), CurrentTokenCount: s.number()}
}

func (s source) target() *contextengine.SessionTarget {
	if rapid.Bool().Draw(s.T, "no target") {
		return nil
	}
	return &contextengine.SessionTarget{AgentID: s.text(), SessionID: s.text(), StorePath: s.text(), ExpectedLifecycleRevision: s.text()}
}

func (s source) settings() *contextengine.RuntimeSettings {
	if rapid.Bool().Draw(s.T, "no settings") {
		return nil
	}
	reason, model := contextengine.DiagnosticOverflow, s.text()
	return &contextengine.RuntimeSettings{
		SchemaVersion: 1, Runtime: contextengine.SettingsRuntime{Host: s.text(), Mode: contextengine.RuntimeDegraded},
		Model: contextengine.SettingsModel{Requested: &model}, Limits: contextengine.SettingsLimits{PromptTokenBudget: s.number()},
		Diagnostics: contextengine.SettingsDiagnostic{DegradedReason: &reason},
	}
}

var keys = []string{
	"a", "agent:main:discord:channel:42", "a/b", "/", "//", "..", ".", "../../x", "100%", "%2F", "a+b c", "?x=1#y", "🦞", "e\u0301", "\u202e",
	strings.Repeat("k", 512), "ingest", "\\\"<&>;,@=$", "\t\n",
}

// TestClientAndHandlerAreTransparent: what a caller says to the client is what
// the engine hears, and what the engine answers is what the caller gets.
func TestClientAndHandlerAreTransparent(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	c := serve(t, r, remote.HandlerOptions{})
	if diff := cmp.Diff(r.Info(), c.Info()); diff != "" {
		t.Errorf("info: %s", diff)
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := source{rt}
		ctx := t.Context()
		same := func(op string, sent, answer any, got any, err error) {
			rt.Helper()
			if err != nil {
				rt.Fatalf("%s: %v", op, err)
			}
			if diff := cmp.Diff(sent, r.heard()); diff != "" {
				rt.Fatalf("%s: the engine heard something else: %s", op, diff)
			}
			if diff := cmp.Diff(answer, got); diff != "" {
				rt.Fatalf("%s: the caller got something else: %s", op, diff)
			}
		}
		switch op := rapid.SampledFrom([]string{"ingest", "batch", "bootstrap", "commit", "after", "assemble", "compact", "maintain"}).Draw(rt, "op"); op {
		case "ingest":
			p := contextengine.IngestParams{Session: s.session(), Expectations: s.expectations(), Message: s.message(), IsHeartbeat: rapid.Bool().Draw(rt, "hb"), IdempotencyKey: s.text()}
			a := contextengine.IngestResult{Ingested: rapid.Bool().Draw(rt, "new"), Seq: 7, Head: 9, Epoch: 2, Duplicate: rapid.Bool().Draw(rt, "dup")}
			r.tell(a, nil)
			got, err := c.Ingest(ctx, p)
			same(op, p, a, got, err)
		case "batch":
			p := contextengine.IngestBatchParams{Session: s.session(), Expectations: s.expectations(), Messages: s.messages(1)}
			a := contextengine.IngestBatchResult{IngestedCount: len(p.Messages), Head: 1 << 60, Epoch: 1}
			for i := range p.Messages {
				a.Seqs = append(a.Seqs, int64(i)<<55)
				p.IdempotencyKeys = append(p.IdempotencyKeys, s.text())
			}
			r.tell(a, nil)
			got, err := c.IngestBatch(ctx, p)
			same(op, p, a, got, err)
		case "bootstrap":
			p := contextengine.BootstrapParams{Session: s.session(), Expectations: s.expectations(), Messages: s.messages(0), SessionTarget: s.target(), RuntimeSettings: s.settings(), RuntimeContext: s.runtime()}
			a := contextengine.BootstrapResult{Bootstrapped: rapid.Bool().Draw(rt, "ok"), ImportedMessages: 3, Reason: s.text(), Head: 3, Epoch: 1}
			r.tell(a, nil)
			got, err := c.Bootstrap(ctx, p)
			same(op, p, a, got, err)
		case "commit":
			p := contextengine.CommitTurnParams{
				Session: s.session(), Expectations: s.expectations(), AdvancementKey: s.text(), Messages: s.messages(1), Admission: s.message(), Terminal: s.message(),
				RuntimeContext: s.runtime(), TokenBudget: s.number(), Usage: &contextengine.Usage{Input: 3, CacheRead: 4},
			}
			a := contextengine.CommitTurnResult{Status: contextengine.TurnDuplicate, Head: 4, Epoch: 2, Compaction: contextengine.CompactionScheduled}
			r.tell(a, nil)
			got, err := c.CommitTurn(ctx, p)
			same(op, p, a, got, err)
		case "after":
			p := contextengine.AfterTurnParams{Session: s.session(), Messages: s.messages(1), PrePromptMessageCount: 1, TokenBudget: s.number(), RuntimeContext: s.runtime()}
			a := contextengine.AfterTurnResult{IngestedCount: 4, Head: 4, Epoch: 2, Compaction: contextengine.CompactionNone}
			r.tell(a, nil)
			got, err := c.AfterTurn(ctx, p)
			same(op, p, a, got, err)
		case "assemble":
			p := contextengine.AssembleParams{
				Session: s.session(), SessionTarget: s.target(), RuntimeSettings: s.settings(), TokenBudget: s.number(), Messages: s.messages(0), Prompt: s.text(), Model: s.text(),
				AvailableTools: []string{"a", s.text()}, CitationsMode: s.text(), AsOfSeq: s.seq(), Explain: rapid.Bool().Draw(rt, "explain"),
			}
			a := contextengine.AssembleResult{
				Messages: append([]json.RawMessage{}, s.messages(0)...), EstimatedTokens: 12, SystemPromptAddition: "<mem> & \u2028", PromptAuthority: "assembled",
				ContextProjection: &contextengine.ContextProjection{Mode: "per_turn", Epoch: "3", Fingerprint: s.text()}, Head: 9, Epoch: 3, LeftOut: 2,
			}
			if p.Explain {
				a.Explanation = []contextengine.Explanation{{Seq: 1, Kind: "message", Tokens: 4, Shown: true, Reason: s.text()}}
				a.OverBudget = &contextengine.OverBudget{Budget: 1, Needed: 2, Items: []contextengine.OverBudgetItem{{Seq: 1, Tokens: 2}}}
			}
			r.tell(a, nil)
			got, err := c.Assemble(ctx, p)
			same(op, p, a, got, err)
		case "compact":
			p := contextengine.CompactParams{
				Session: s.session(), Expectations: s.expectations(), TokenBudget: s.number(), Force: rapid.Bool().Draw(rt, "force"),
				SessionTarget: s.target(), RuntimeSettings: s.settings(), RuntimeContext: s.runtime(), AgentID: s.text(),
				CurrentTokenCount: s.number(), CompactionTarget: "threshold", CustomInstructions: s.text(),
			}
			a := contextengine.CompactResult{OK: true, Compacted: rapid.Bool().Draw(rt, "compacted"), Reason: s.text(), Epoch: 4}
			if a.Compacted {
				a.Result = &contextengine.CompactionOutcome{Summary: "## D\n<&>", FirstKeptEntryID: "e1", TokensBefore: 9, TokensAfter: 3, SessionID: s.text(), SessionTarget: s.target(), Details: s.message()}
			}
			r.tell(a, nil)
			got, err := c.Compact(ctx, p)
			same(op, p, a, got, err)
		case "maintain":
			p := contextengine.MaintainParams{Session: s.session(), Reason: "turn", SessionTarget: s.target(), RuntimeSettings: s.settings(), RuntimeContext: s.runtime()}
			a := contextengine.MaintainResult{Changed: true, BytesFreed: 1 << 40, RewrittenEntries: 2, Reason: s.text()}
			r.tell(a, nil)
			got, err := c.Maintain(ctx, p)
			same(op, p, a, got, err)
		}
	})
}

func TestContractErrorsArriveAsThemselves(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	c := serve(t, r, remote.HandlerOptions{})
	head, epoch := int64(3), int64(2)
	want := contextengine.Expectations{ExpectedHead: &head, ExpectedEpoch: &epoch}
	for _, sent := range []error{
		&contextengine.StaleHeadError{Expected: 3, Head: 9},
		&contextengine.EpochConflictError{Expected: 2, Epoch: 0},
		&contextengine.IdempotencyConflictError{Key: "k <&>", Seq: 4},
		&contextengine.InvalidError{Field: "message", Reason: "is: odd"},
		&contextengine.InvalidError{Field: "message", Reason: "too large", Limit: 5, TooLarge: true},
		contextengine.ErrUnknownSession, contextengine.ErrSessionErased, contextengine.ErrNothingToUndo,
	} {
		r.tell(nil, fmt.Errorf("wrapped: %w", sent))
		_, err := c.Ingest(t.Context(), contextengine.IngestParams{Session: on("k"), Expectations: want, Message: json.RawMessage(`{}`)})
		if diff := cmp.Diff(fmt.Sprintf("%T %v", sent, sent), fmt.Sprintf("%T %v", err, err)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnforeseenErrorsKeepTheirTextUnlessExposed(t *testing.T) {
	t.Parallel()
	for _, expose := range []bool{false, true} {
		r := &recorder{err: errors.New("secret path /srv/x")}
		c := serve(t, r, remote.HandlerOptions{ExposeErrors: expose})
		_, err := c.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k")})
		var status *remote.StatusError
		if !errors.As(err, &status) || status.Status != 500 || status.Slug != "internal" || strings.Contains(err.Error(), "secret") != expose {
			t.Errorf("expose %v: %v", expose, err)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			t.Error("a failure looks like an absent call")
		}
	}
}

// TestAbsentCallsAreUnsupported, both where the engine says so beforehand and
// where the client has to ask.
func TestAbsentCallsAreUnsupported(t *testing.T) {
	t.Parallel()
	info := contextengine.Info{ID: "x", Name: "x"}
	for name, c := range map[string]*remote.Client{
		"told":  serve(t, bare{&recorder{}}, remote.HandlerOptions{}),
		"asked": serve(t, bare{&recorder{}}, remote.HandlerOptions{}, func(cfg *remote.Config) { cfg.Info = &info }),
	} {
		ctx, s := t.Context(), on("k")
		one := []json.RawMessage{json.RawMessage(`{}`)}
		_, e1 := c.Bootstrap(ctx, contextengine.BootstrapParams{Session: s})
		_, e2 := c.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: one})
		_, e3 := c.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "a", Messages: one})
		_, e4 := c.AfterTurn(ctx, contextengine.AfterTurnParams{Session: s, Messages: one})
		_, e5 := c.Maintain(ctx, contextengine.MaintainParams{Session: s})
		for i, err := range []error{e1, e2, e3, e4, e5} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: optional call %d: %v", name, i, err)
			}
		}
		if _, err := c.Ingest(ctx, contextengine.IngestParams{Session: s, Message: one[0]}); err != nil {
			t.Errorf("%s: ingest: %v", name, err)
		}
	}
}
