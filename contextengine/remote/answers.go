package remote

import (
	"strings"

	"github.com/engined/engined/contextengine"
)

// The answers, with the members that the contract demands as pointers, so that
// a missing one is seen. A member at the top shadows the embedded one.
type (
	ingestAnswer struct {
		contextengine.IngestResult
		Ingested *bool `json:"ingested"`
	}
	batchAnswer struct {
		contextengine.IngestBatchResult
		IngestedCount *int           `json:"ingestedCount"`
		Seqs          bounded[int64] `json:"seqs"`
	}
	bootstrapAnswer struct {
		contextengine.BootstrapResult
		Bootstrapped *bool `json:"bootstrapped"`
	}
	commitAnswer struct {
		contextengine.CommitTurnResult
	}
	afterAnswer struct {
		contextengine.AfterTurnResult
	}
	maintainAnswer struct {
		contextengine.MaintainResult
		Changed *bool `json:"changed"`
	}
	compactAnswer struct {
		contextengine.CompactResult
		OK        *bool `json:"ok"`
		Compacted *bool `json:"compacted"`
	}
	assembleAnswer struct {
		contextengine.AssembleResult
		Messages        messageList                        `json:"messages"`
		EstimatedTokens *int                               `json:"estimatedTokens"`
		OverBudget      *overAnswer                        `json:"overBudget"`
		Explanation     bounded[contextengine.Explanation] `json:"explanation"`
	}
	overAnswer struct {
		contextengine.OverBudget
		Items bounded[contextengine.OverBudgetItem] `json:"items"`
	}
)

func missing(op, member string) error {
	return &ProtocolError{Op: op, Reason: "the answer has no " + member}
}

func wrong(op, reason string) error { return &ProtocolError{Op: op, Reason: reason} }

// maxNumber leaves room to count on from a number without overflow.
const maxNumber = 1 << 62

// ordinals checks seqs, heads, epochs and counts.
func ordinals(op string, ns ...int64) error {
	for _, n := range ns {
		if n < 0 || n > maxNumber {
			return wrong(op, "a seq, head, epoch or count of the answer is out of range")
		}
	}
	return nil
}

func (a *ingestAnswer) result() (contextengine.IngestResult, error) {
	if a.Ingested == nil {
		return contextengine.IngestResult{}, missing(opIngest, "ingested")
	}
	a.IngestResult.Ingested = *a.Ingested
	return a.IngestResult, ordinals(opIngest, a.Seq, a.Head, a.Epoch)
}

func (a *batchAnswer) result(messages int) (contextengine.IngestBatchResult, error) {
	switch n := a.IngestedCount; {
	case n == nil:
		return contextengine.IngestBatchResult{}, missing(opIngestBatch, "ingestedCount")
	case *n < 0 || *n > messages:
		return contextengine.IngestBatchResult{}, wrong(opIngestBatch, "ingestedCount is not a number of the messages sent")
	case a.Seqs.items != nil && len(a.Seqs.items) != messages:
		return contextengine.IngestBatchResult{}, wrong(opIngestBatch, "seqs does not have one seq per message")
	}
	a.IngestBatchResult.IngestedCount, a.IngestBatchResult.Seqs = *a.IngestedCount, a.Seqs.items
	return a.IngestBatchResult, ordinals(opIngestBatch, append([]int64{a.Head, a.Epoch}, a.Seqs.items...)...)
}

func (a *bootstrapAnswer) result() (contextengine.BootstrapResult, error) {
	if a.Bootstrapped == nil {
		return contextengine.BootstrapResult{}, missing(opBootstrap, "bootstrapped")
	}
	a.BootstrapResult.Bootstrapped = *a.Bootstrapped
	return a.BootstrapResult, ordinals(opBootstrap, int64(a.ImportedMessages), a.Head, a.Epoch)
}

func (a *commitAnswer) result() (contextengine.CommitTurnResult, error) {
	switch a.Status {
	case contextengine.TurnCommitted, contextengine.TurnDuplicate:
		return a.CommitTurnResult, ordinals(opCommitTurn, a.Head, a.Epoch)
	}
	return contextengine.CommitTurnResult{}, wrong(opCommitTurn, "invalid commitTurn result status: "+excerpt([]byte(a.Status)))
}

func (a *afterAnswer) result() (contextengine.AfterTurnResult, error) {
	return a.AfterTurnResult, ordinals(opAfterTurn, int64(a.IngestedCount), a.Head, a.Epoch)
}

func (a *maintainAnswer) result() (contextengine.MaintainResult, error) {
	if a.Changed == nil {
		return contextengine.MaintainResult{}, missing(opMaintain, "changed")
	}
	a.MaintainResult.Changed = *a.Changed
	return a.MaintainResult, ordinals(opMaintain, a.BytesFreed, int64(a.RewrittenEntries))
}

func (a *compactAnswer) result() (contextengine.CompactResult, error) {
	switch {
	case a.OK == nil:
		return contextengine.CompactResult{}, missing(opCompact, "ok")
	case a.Compacted == nil:
		return contextengine.CompactResult{}, missing(opCompact, "compacted")
	case *a.Compacted && !*a.OK:
		return contextengine.CompactResult{}, wrong(opCompact, "compacted though not ok")
	}
	a.CompactResult.OK, a.CompactResult.Compacted = *a.OK, *a.Compacted
	return a.CompactResult, ordinals(opCompact, a.Epoch)
}

func (a *assembleAnswer) result() (contextengine.AssembleResult, error) {
	none := contextengine.AssembleResult{}
	switch {
	case !a.Messages.here:
		return none, missing(opAssemble, "messages")
	case a.EstimatedTokens == nil:
		return none, missing(opAssemble, "estimatedTokens")
	case *a.EstimatedTokens < 0:
		return none, wrong(opAssemble, "estimatedTokens is negative")
	case strings.ContainsRune(a.SystemPromptAddition, 0):
		return none, wrong(opAssemble, "systemPromptAddition holds a NUL")
	}
	res := a.AssembleResult
	res.Messages, res.EstimatedTokens, res.Explanation = a.Messages.items, *a.EstimatedTokens, a.Explanation.items
	if a.OverBudget != nil {
		res.OverBudget = &a.OverBudget.OverBudget
		res.OverBudget.Items = a.OverBudget.Items.items
	}
	return res, ordinals(opAssemble, res.Head, res.Epoch, int64(res.LeftOut), int64(res.TokenBudget))
}
