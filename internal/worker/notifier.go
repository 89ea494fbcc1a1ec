package worker

import (
	"github.com/google/uuid"

	"github.com/engined/engined/internal/bus"
)

// Notifier tells the bus what an engine did. What NATS does not take is
// dropped here: the relay and the sweep publish it from Postgres.
type Notifier struct{ pub *bus.Publisher }

// NewNotifier wraps a publisher.
func NewNotifier(pub *bus.Publisher) *Notifier { return &Notifier{pub: pub} }

// TurnCompleted publishes the end of a turn.
func (n *Notifier) TurnCompleted(tenant string, sid uuid.UUID, seq, epoch int64) {
	n.pub.Notice(bus.Notice{Type: bus.TurnCompleted, Tenant: tenant, SID: sid.String(), Seq: seq, Epoch: epoch})
}

// EpochRotated publishes an epoch step.
func (n *Notifier) EpochRotated(tenant string, sid uuid.UUID, seq, epoch int64) {
	n.pub.Notice(bus.Notice{Type: bus.EpochRotated, Tenant: tenant, SID: sid.String(), Seq: seq, Epoch: epoch})
}

// CompactionOwed publishes the job of a debt.
func (n *Notifier) CompactionOwed(tenant string, sid uuid.UUID, epoch int64) {
	n.pub.Job(bus.Job{Tenant: tenant, SID: sid.String(), Epoch: epoch})
}

// CompactionStarting publishes that a compaction is about to be made.
func (n *Notifier) CompactionStarting(tenant string, sid uuid.UUID, seq, epoch int64) {
	n.pub.Notice(bus.Notice{Type: bus.CompactionStarting, Tenant: tenant, SID: sid.String(), Seq: seq, Epoch: epoch})
}

// CompactionFinished publishes that one has ended, however it did.
func (n *Notifier) CompactionFinished(tenant string, sid uuid.UUID, seq, epoch int64) {
	n.pub.Notice(bus.Notice{Type: bus.CompactionFinished, Tenant: tenant, SID: sid.String(), Seq: seq, Epoch: epoch})
}
