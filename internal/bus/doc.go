// Package bus spreads work over NATS JetStream: which session owes a
// compaction (jobs) and what happened to a session (notices). It is the only
// package that imports nats.go and nats-server.
//
// The bus carries ids, never content, and may be wiped at any time. What is
// owed is written in Postgres; the bus only makes that known quickly and deals
// it out. So every loss below is repaired by a sweep that publishes again, and
// every repetition is made harmless by a consumer that checks Postgres before
// it commits. With NATS away nothing here blocks or fails a turn: publishing
// answers [ErrUnavailable] at once, a [Publisher] drops and counts.
//
// # Streams
//
//	ENGINED_JOBS    engined.job.compact.<partition>    kept 1 h
//	ENGINED_EVENTS  engined.event.<type>.<partition>   kept 24 h
//
// The partition is a hash of the session's sid modulo [Partitions]; tenant and
// session never stand in a subject. Streams and consumers are created when
// missing: at connect, after every reconnect and whenever the server says that
// one is gone.
//
// # Jobs
//
// A nil answer of [Bus.PublishJob] means that the server has stored the job in
// its memory or file cache. It does not mean that the job survives a power
// loss: the server syncs its disk every two minutes.
//
// Delivery is at least once. A job is delivered again when its worker fails,
// stops, disappears for longer than AckWait or loses its ack, and two workers
// may hold the same job at one time: an ack is no fence. Order is not promised,
// neither within a session nor between jobs. A handler must therefore commit
// by compare-and-swap on the job's epoch.
//
// Equal ids within two minutes are stored once, even when the first copy was
// already done: the id of a job is sid, epoch and attempt, so a deliberate
// re-send uses the next attempt. A deduplicated publish answers nil.
//
// A job ends by ack (the handler returned nil), by Term (the handler returned
// [ErrPermanent], the job failed MaxDeliver-1 times, or its bytes are no job)
// or by age. Before Term of a well-formed job OnDead is called; when OnDead
// fails the job is delivered again while deliveries are left. A job whose
// workers died without an answer is given to OnDead unrun at delivery
// MaxDeliver. Deliveries ended by a stop count as deliveries.
//
// What a delivery says to the server is withheld when the stream was made
// anew since: the sequence it names would be another job's.
//
// # Notices
//
// A notice tells that an event exists. [Bus.Subscribe] hands notices to one
// function, one at a time, in the order of the stream; notices that one
// [Publisher] accepted for one session stand in the stream in that order, those
// of several nodes in any order. A subscription resumes after a reconnect where
// it was. When it cannot (stream made anew, notices aged out, NATS away when it
// began) it calls OnGap before the next notice, and the subscriber reads
// Postgres. Notices may repeat beyond the two minutes of deduplication; keep a
// watermark per session and refuse to go back.
package bus
