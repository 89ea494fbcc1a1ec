package api

import "github.com/engined/engined/internal/access"

// How a call makes a tenant's data grow.
const (
	writes = 1 + iota // in a session that it may open
	opens             // in a session that it does open
)

// grows says which calls the limits of sessions and storage refuse. What
// compacts is not among them: it is how a session becomes small.
func grows() map[string]int { return growing }

var growing = map[string]int{
	"bootstrap": writes, "ingest": writes, "ingestBatch": writes, "commitTurn": writes, "afterTurn": writes, "transcript": writes,
	"takeLease": writes, "fork": opens, "prepareSubagent": opens,
}

const (
	// reading is for everybody who may see a tenant's sessions.
	reading = access.Gateway | access.Worker | access.Analyst
	// hosting is what a gateway does for its sessions.
	hosting = access.Gateway
	// upkeep is what a worker does as well.
	upkeep = access.Gateway | access.Worker
	// operating is for admins alone.
	operating = access.Admin
)

// callers says whose keys may call each operation. Admins may call all; an
// operation that is not here is theirs alone, and a test fails. docs/security.md
// shows the table.
func callers() map[string]access.Scopes {
	return map[string]access.Scopes{
		"bootstrap": hosting, "ingest": hosting, "ingestBatch": hosting, "commitTurn": hosting, "afterTurn": hosting,
		"transcript": hosting, "readTranscript": reading,
		"reset": hosting, "rewind": hosting, "undoCompaction": hosting, "fork": hosting,
		"prepareSubagent": hosting, "rollbackSubagent": hosting, "endSubagent": hosting,
		"takeLease": hosting, "releaseLease": hosting,

		// Assembling stores nothing of the session, and shows what a model saw.
		"assemble": reading,
		"compact":  upkeep, "maintain": upkeep,

		"listSessions": reading, "getSession": reading, "listEvents": reading, "streamEvents": reading,
		"listSummaries": reading, "getSummary": reading, "listSources": reading, "expandSummary": reading,
		"listSummarizers": reading, "leaseSummarization": hosting, "answerSummarization": hosting, "failSummarization": hosting,
		"listFeed": reading, "streamFeed": reading, "search": reading, "listEngines": reading, "describeEngine": reading,

		// A host whose user deletes a session erases it; it names each by its key.
		"eraseSession": hosting,

		// What takes many sessions away, what concerns a whole node, and who did what.
		"eraseSessions": operating, "clearQuarantine": operating, "listAudit": operating,
	}
}
