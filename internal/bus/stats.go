package bus

import "sync/atomic"

// Stats counts what happened on this Bus since Connect.
type Stats struct {
	// Published were stored by the server, Duplicates among them by an
	// earlier copy; PublishFailed answered ErrUnavailable.
	Published, Duplicates, PublishFailed uint64
	// Dropped never left a Publisher: NATS was away or its queue full.
	Dropped uint64
	// Delivered jobs were handed to a handler or OnDead, Redelivered are
	// those whose delivery was not the first.
	Delivered, Redelivered uint64
	// Acked, Retried, Returned (by a stop), Dead are how deliveries ended.
	Acked, Retried, Returned, Dead uint64
	// Malformed messages were thrown away; Stale answers were withheld since
	// their stream was made anew.
	Malformed, Stale uint64
	// Connects counts the times the connection came up, the first included.
	Connects uint64
}

type counters struct {
	published, duplicates, publishFailed, dropped atomic.Uint64
	delivered, redelivered                        atomic.Uint64
	acked, retried, returned, dead                atomic.Uint64
	malformed, stale                              atomic.Uint64
}

// Stats reads the counters; they are not of one instant.
func (b *Bus) Stats() Stats {
	c := &b.count
	return Stats{
		Published:     c.published.Load(),
		Duplicates:    c.duplicates.Load(),
		PublishFailed: c.publishFailed.Load(),
		Dropped:       c.dropped.Load(),
		Delivered:     c.delivered.Load(),
		Redelivered:   c.redelivered.Load(),
		Acked:         c.acked.Load(),
		Retried:       c.retried.Load(),
		Returned:      c.returned.Load(),
		Dead:          c.dead.Load(),
		Malformed:     c.malformed.Load(),
		Stale:         c.stale.Load(),
		Connects:      b.link.ups(),
	}
}
