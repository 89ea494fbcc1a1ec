package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// blameless tells errors that say nothing against the engine: the caller's own
// faults, and what every engine here stands on being away.
func blameless(err error) (yes bool) {
	defer func() {
		if recover() != nil { // an error that panics when it is asked
			yes = false
		}
	}()
	for _, target := range []error{
		contextengine.ErrUnknownSession, contextengine.ErrSessionErased, contextengine.ErrNothingToUndo,
		contextengine.ErrSessionExists, contextengine.ErrSubagentBegan,
		store.ErrUnavailable, store.ErrTooBusy, store.ErrLeaseStale, errDelegated,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	var (
		invalid  *contextengine.InvalidError
		stale    *contextengine.StaleHeadError
		epoch    *contextengine.EpochConflictError
		conflict *contextengine.IdempotencyConflictError
		unfit    *message.InvalidError
		native   *nativeError
	)
	return errors.As(err, &invalid) || errors.As(err, &stale) || errors.As(err, &epoch) ||
		errors.As(err, &conflict) || errors.As(err, &unfit) || errors.As(err, &native)
}

func checkInfo(i contextengine.Info) error {
	var missing []string
	if strings.TrimSpace(i.ID) == "" {
		missing = append(missing, "info.id")
	}
	if strings.TrimSpace(i.Name) == "" {
		missing = append(missing, "info.name")
	}
	if missing != nil {
		return fmt.Errorf("the engine lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// The checks below tell results that cannot be. They ask for nothing that an
// engine may leave out.

func checkAssembled(r contextengine.AssembleResult) error {
	switch {
	case r.Messages == nil:
		return errors.New("the result has no messages array")
	case r.EstimatedTokens < 0:
		return fmt.Errorf("estimatedTokens is %d", r.EstimatedTokens)
	}
	for i, m := range r.Messages {
		if len(m) == 0 || m[0] != '{' {
			return fmt.Errorf("messages[%d] is not a JSON object", i)
		}
	}
	return nil
}

// checkForeign reads what the built-in engines take from the log as it is.
func checkForeign(r contextengine.AssembleResult) error {
	for i, m := range r.Messages {
		if !json.Valid(m) {
			return fmt.Errorf("messages[%d] is not valid JSON", i)
		}
	}
	return nil
}

func checkCommitted(r contextengine.CommitTurnResult) error {
	if r.Status != contextengine.TurnCommitted && r.Status != contextengine.TurnDuplicate {
		return fmt.Errorf("invalid commitTurn result status: %q", r.Status)
	}
	return nil
}

func checkCompacted(r contextengine.CompactResult) error {
	if r.Compacted && !r.OK {
		return errors.New("compacted, but not ok")
	}
	out := r.Result
	if out == nil {
		return nil
	}
	if out.TokensBefore < 0 || out.TokensAfter < 0 {
		return fmt.Errorf("tokens before %d, after %d", out.TokensBefore, out.TokensAfter)
	}
	if out.SessionID == "" && out.SessionTarget == nil {
		return nil
	}
	if !r.OK || !r.Compacted {
		return errors.New("a successor session without a compaction")
	}
	if out.SessionTarget != nil && out.SessionTarget.SessionID != out.SessionID {
		return fmt.Errorf("sessionId %q is not sessionTarget's %q", out.SessionID, out.SessionTarget.SessionID)
	}
	return nil
}

func checkBatch(n int) func(contextengine.IngestBatchResult) error {
	return func(r contextengine.IngestBatchResult) error {
		if err := checkCount(r.IngestedCount, n); err != nil {
			return err
		}
		if len(r.Seqs) != 0 && len(r.Seqs) != n {
			return fmt.Errorf("%d seqs for %d messages", len(r.Seqs), n)
		}
		return nil
	}
}

func checkAfterTurn(n int) func(contextengine.AfterTurnResult) error {
	return func(r contextengine.AfterTurnResult) error { return checkCount(r.IngestedCount, n) }
}

func checkCount(ingested, n int) error {
	if ingested < 0 || ingested > n {
		return fmt.Errorf("ingestedCount is %d of %d messages", ingested, n)
	}
	return nil
}

func checkBootstrapped(r contextengine.BootstrapResult) error {
	if r.ImportedMessages < 0 {
		return fmt.Errorf("importedMessages is %d", r.ImportedMessages)
	}
	return nil
}

func checkMaintained(r contextengine.MaintainResult) error {
	if r.BytesFreed < 0 || r.RewrittenEntries < 0 {
		return fmt.Errorf("bytesFreed is %d, rewrittenEntries %d", r.BytesFreed, r.RewrittenEntries)
	}
	return nil
}
