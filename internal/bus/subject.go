package bus

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names and bounds of the streams.
const (
	// JobsStream holds the jobs, EventsStream the notices.
	JobsStream   = "ENGINED_JOBS"
	EventsStream = "ENGINED_EVENTS"
	// Partitions is the fixed number of hash partitions of either stream.
	Partitions = 16

	jobSubjects   = "engined.job.compact.*"
	eventSubjects = "engined.event.*.*"

	jobsMaxAge   = time.Hour
	eventsMaxAge = 24 * time.Hour
	// Deduplication ids live in the server's memory: keep it at minutes.
	dedupWindow = 2 * time.Minute
	// Counts bound the streams, not bytes: MaxBytes would reserve disk.
	maxJobs   = 1_000_000
	maxEvents = 5_000_000
)

// Partition is the hash partition of a session, from 0 to Partitions-1.
func Partition(sid string) int {
	h := fnv.New32a()
	h.Write([]byte(sid)) // never fails
	return int(h.Sum32() % Partitions)
}

func (j Job) subject() string { return "engined.job.compact." + strconv.Itoa(Partition(j.SID)) }

// dedupID makes a lost answer's retry one job and a new attempt another.
func (j Job) dedupID() string {
	return j.SID + "." + strconv.FormatInt(j.Epoch, 10) + "." + strconv.Itoa(j.Attempt)
}

func (n Notice) subject() string {
	return "engined.event." + string(n.Type) + "." + strconv.Itoa(Partition(n.SID))
}

// dedupID is the event's. What frames a compaction is no event: its seq is that of
// another one, and a compaction that is tried again is told of again. It has none.
func (n Notice) dedupID() string {
	if n.Type == CompactionStarting || n.Type == CompactionFinished {
		return ""
	}
	return n.SID + "." + strconv.FormatInt(n.Seq, 10)
}

// streamConfigs is the wanted state of the streams, jobs first. Limits
// retention is the forgiving choice for what can be rebuilt from Postgres:
// work-queue retention refuses a second consumer during a version change.
func streamConfigs(replicas int) [2]jetstream.StreamConfig {
	base := jetstream.StreamConfig{
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardOld,
		Storage:    jetstream.FileStorage,
		Duplicates: dedupWindow,
		MaxMsgSize: 2 * MaxMessageBytes, // headers count
		Replicas:   replicas,
	}
	jobs, events := base, base
	jobs.Name, jobs.Subjects, jobs.MaxAge, jobs.MaxMsgs = JobsStream, []string{jobSubjects}, jobsMaxAge, maxJobs
	jobs.Description = "engined: which session owes work; rebuilt from Postgres"
	events.Name, events.Subjects, events.MaxAge, events.MaxMsgs = EventsStream, []string{eventSubjects}, eventsMaxAge, maxEvents
	events.Description = "engined: which event exists; rebuilt from Postgres"
	return [2]jetstream.StreamConfig{jobs, events}
}
