// Package enginetest is the contract as tests: any engine, wherever it lives,
// can run them and know that a host can use it.
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, func(t testing.TB) contextengine.Engine { return newEngine(t) }, enginetest.Options{})
//	}
//
// Optional methods are tested where an engine has them and does not answer
// errors.ErrUnsupported. What an engine declares not to do is in Options.Lacks.
// An engine has to keep at least Kept messages of a session.
package enginetest

import (
	"testing"

	"github.com/engined/engined/contextengine"
)

// Kept is how many messages of a session the suite expects an engine to keep
// and to show where the budget is large.
const Kept = 200

// Feature is something that an engine may declare not to do.
type Feature uint

// The features. An engine that lacks one is not tested for it, nor for what
// builds on it.
const (
	// Storage: Assemble shows what was ingested.
	Storage Feature = 1 << iota
	// Budgets: a window keeps to its budget, or says OverBudget.
	Budgets
	// IdempotencyKeys: a known key stores nothing twice.
	IdempotencyKeys
	// Expectations: a stale ExpectedHead is refused.
	Expectations
	// Compaction: a forced compaction of a long session makes it smaller.
	Compaction
	// Tenants: sessions of two tenants with one key are two sessions.
	Tenants
	// KeyChecks: the engine itself refuses session keys out of bounds, and does
	// not leave that to whoever calls it.
	KeyChecks
)

// Options say how an engine is tested. The zero value is the whole contract.
type Options struct {
	Lacks Feature
	// Tenant is whose sessions the tests use. Default "enginetest".
	Tenant string
}

// Run tests an engine. The factory is called for each test; it may return the
// same engine, since every test has sessions of its own. What has to be released
// belongs in t.Cleanup.
func Run(t *testing.T, factory func(t testing.TB) contextengine.Engine, o Options) {
	t.Helper()
	if o.Tenant == "" {
		o.Tenant = "enginetest"
	}
	for _, tc := range []struct {
		name  string
		needs Feature
		run   func(*engine)
	}{
		{"InfoIsConstant", 0, infoIsConstant},
		{"IngestAnswers", 0, ingestAnswers},
		{"AssembleAnswers", 0, assembleAnswers},
		{"UnknownSessionIsEmpty", 0, unknownSessionIsEmpty},
		{"OddParametersAreRefused", 0, oddParametersAreRefused},
		{"OddKeysAreRefused", KeyChecks, oddKeysAreRefused},
		{"ParametersAreLeftAlone", 0, parametersAreLeftAlone},
		{"CancelledCallsStop", 0, cancelledCallsStop},
		{"MaintainAnswers", 0, maintainAnswers},
		{"SubagentsAnswer", 0, subagentsAnswer},
		{"MessagesKeepTheirOrder", Storage, messagesKeepTheirOrder},
		{"MessagesKeepTheirBytes", Storage, messagesKeepTheirBytes},
		{"EqualMessagesAllCount", Storage, equalMessagesAllCount},
		{"AssembleStoresNothing", Storage, assembleStoresNothing},
		{"SessionsAreApart", Storage, sessionsAreApart},
		{"TenantsAreApart", Storage | Tenants, tenantsAreApart},
		{"WindowsKeepToTheirBudget", Storage | Budgets, windowsKeepToTheirBudget},
		{"IdempotencyKeysHold", Storage | IdempotencyKeys, idempotencyKeysHold},
		{"StaleHeadsAreRefused", Storage | Expectations, staleHeadsAreRefused},
		{"BatchesAreWhole", Storage, batchesAreWhole},
		{"TurnsAreCommittedOnce", Storage, turnsAreCommittedOnce},
		{"AfterTurnStoresWhatIsNew", Storage, afterTurnStoresWhatIsNew},
		{"BootstrapSkipsWhatIsKnown", Storage, bootstrapSkipsWhatIsKnown},
		{"CompactAnswers", 0, compactAnswers},
		{"CompactMakesTheWindowSmaller", Storage | Compaction, compactMakesTheWindowSmaller},
		{"ConcurrentCallsLoseNothing", Storage, concurrentCallsLoseNothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.needs&o.Lacks != 0 {
				t.Skip("the engine declares not to do this")
			}
			tc.run(&engine{T: t, Engine: factory(t), tenant: o.Tenant})
		})
	}
}
