package contextengine

import (
	"context"
	"errors"
	"fmt"
)

// CompactionRuntime is a host's own compaction.
type CompactionRuntime interface {
	Compact(ctx context.Context, p CompactParams) (CompactResult, error)
}

// ErrNoRuntime: this host has no compaction of its own to delegate to. It is an
// errors.ErrUnsupported.
var ErrNoRuntime = fmt.Errorf("no compaction runtime: %w", errors.ErrUnsupported)

// DelegateCompaction has the host's own runtime compact, for an engine that does
// not own compaction. The runtime ignores CompactionTarget and takes no more time
// than ctx and the host's safety timeout leave.
//
// An engine that has no p.Runtime, because its host is behind a network, answers
// with the error as it is: a call of Compact that is not supported, of an engine
// that does not own compaction, is delegated by the host.
func DelegateCompaction(ctx context.Context, p CompactParams) (CompactResult, error) {
	if p.Runtime == nil {
		return CompactResult{}, ErrNoRuntime
	}
	p.CompactionTarget = ""
	return p.Runtime.Compact(ctx, p)
}
