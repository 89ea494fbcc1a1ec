package engine

import (
	"errors"
	"strings"
	"time"
)

// Operation is a thing done with an engine, in the contract's words. It stands
// in a quarantine's record.
type Operation string

// The operations. The first three make an instance; the rest are calls of it.
const (
	OpResolve     Operation = "resolve"
	OpFactory     Operation = "factory"
	OpValidate    Operation = "contract-validation"
	OpBootstrap   Operation = "bootstrap"
	OpMaintain    Operation = "maintain"
	OpIngest      Operation = "ingest"
	OpIngestBatch Operation = "ingestBatch"
	OpAfterTurn   Operation = "afterTurn"
	OpCommitTurn  Operation = "commitTurn"
	OpAssemble    Operation = "assemble"
	OpCompact     Operation = "compact"
	OpPrepare     Operation = "prepareSubagentSpawn"
	OpRollback    Operation = "rollback"
	OpEnded       Operation = "onSubagentEnded"
	OpReset       Operation = "reset"
	OpRewind      Operation = "rewind"
	OpUndo        Operation = "undoCompaction"
	OpFork        Operation = "fork"
	OpTranscript  Operation = "transcript"
	OpDispose     Operation = "dispose"
)

// The deadlines that hold where none are set: an ordinary call's, the host's
// safety timeout of a compaction and its deadline for clean-up.
const (
	DefaultCallDeadline    = 10 * time.Second
	DefaultCompactDeadline = 180 * time.Second
	defaultDisposeDeadline = 10 * time.Second
)

// Deadlines bound an engine's operations. Every operation has one: what is not
// above zero counts as not set.
type Deadlines struct {
	// Call bounds what Of does not name, except compactions and disposals.
	Call time.Duration
	// Of bounds single operations.
	Of map[Operation]time.Duration
}

func (d Deadlines) of(op Operation) time.Duration {
	if own := d.Of[op]; own > 0 {
		return own
	}
	switch {
	case op == OpCompact:
		return DefaultCompactDeadline
	case op == OpDispose:
		return defaultDisposeDeadline
	case d.Call > 0:
		return d.Call
	}
	return DefaultCallDeadline
}

// CallOperations are the operations whose deadline may be set, by the names
// that settings use.
func CallOperations() []Operation {
	return []Operation{
		OpFactory, OpBootstrap, OpMaintain, OpIngest, OpIngestBatch, OpAfterTurn, OpCommitTurn, OpAssemble, OpCompact,
		OpPrepare, OpRollback, OpEnded, OpDispose,
	}
}

// readable is err, or another one in its place when it panics on being read.
func readable(err error) (safe error) {
	defer func() {
		if recover() != nil {
			safe = errors.New(reasonOf(err))
		}
	}()
	_ = err.Error()
	return err
}

// reasonBytes bounds what a quarantine tells of an error.
const reasonBytes = 300

// reasonOf is an error's text on one bounded line. What a broken engine's
// error does when it is asked is caught too.
func reasonOf(err error) (reason string) {
	defer func() {
		if recover() != nil {
			reason = "an error that panics when it is read"
		}
	}()
	reason = strings.Join(strings.Fields(err.Error()), " ")
	if len(reason) > reasonBytes {
		reason = strings.ToValidUTF8(reason[:reasonBytes], "") + "…"
	}
	if reason == "" {
		reason = "an error without text"
	}
	return reason
}
