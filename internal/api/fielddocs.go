package api

// doc describes a member of a request or an answer.
type doc struct {
	text  string
	least *float64
}

func says(text string) doc { return doc{text: text} }

func atLeast(n float64, text string) doc { return doc{text: text, least: &n} }

// fieldDoc finds what a member means: for one type, else for all that have it.
// The contract's Go types carry no documentation tags, so it stands here.
func fieldDoc(schema, field string) doc {
	docs := fieldDocs()
	if d, ok := docs[schema+"."+field]; ok {
		return d
	}
	return docs[field]
}

func fieldDocs() map[string]doc {
	return map[string]doc{
		"sessionId":                       says("The host's transcript id under this key."),
		"gatewayId":                       says("Which gateway speaks, where several share a session."),
		"leaseToken":                      says("The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it."),
		"expectedHead":                    atLeast(0, "The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`."),
		"expectedEpoch":                   atLeast(0, "The epoch as the caller knows it; another one answers 409 `epoch-conflict`."),
		"EngineList.defaultTokenBudget":   says("The budget that counts where neither the call, the session nor the model has one."),
		"AssembleResult.tokenBudget":      says("The budget that counted."),
		"isHeartbeat":                     says("The message belongs to a heartbeat exchange."),
		"idempotencyKey":                  says("Makes a retry harmless: the same key and message answer the first seq, another message is a conflict. White space and the order of members do not make another message; the text of a number does: `1` and `1.0` differ."),
		"idempotencyKeys":                 says("One key per message; \"\" is none."),
		"messages":                        says("Messages in order."),
		"advancementKey":                  says("Names the turn; 1 to 512 bytes."),
		"admission":                       says("The host's anchor of the first message, kept as sent."),
		"terminal":                        says("The host's anchor of the last message, kept as sent."),
		"runtimeContext":                  says("What engines read of the host's open record."),
		"sessionTarget":                   says("The transcript in the host's own terms."),
		"runtimeSettings":                 says("The run that the call belongs to; null is unknown."),
		"agentId":                         says("The agent whose session this is."),
		"autoCompactionSummary":           says("The text of a compaction that the host itself made during the turn."),
		"prePromptMessageCount":           atLeast(0, "How many of `messages` were there before the turn."),
		"tokenBudget":                     atLeast(1, "A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default."),
		"usage":                           says("What the provider reported; the prompt had input + cacheRead + cacheWrite tokens."),
		"input":                           atLeast(0, "Prompt tokens that were not cached."),
		"output":                          atLeast(0, "Tokens of the answer."),
		"cacheRead":                       atLeast(0, "Prompt tokens read from the provider's cache."),
		"cacheWrite":                      atLeast(0, "Prompt tokens written to the provider's cache."),
		"head":                            says("The session's highest seq; it never goes back."),
		"hostHead":                        says("The highest seq that a host wrote; `expectedHead` is held against it."),
		"epoch":                           says("Changes exactly when the meaning of the window's prefix changes."),
		"seq":                             says("The event's place in its session: 1, 2, 3 … without gaps."),
		"seqs":                            says("One seq per message, duplicates included."),
		"duplicate":                       says("The message was there before; `seq` is the first one's."),
		"ingestedCount":                   says("How many messages were new."),
		"estimatedTokens":                 says("The window's size by estimate."),
		"systemPromptAddition":            says("Text for the system prompt."),
		"contextProjection":               says("While `epoch` and `fingerprint` are both equal, an earlier window is a prefix of a later one."),
		"overBudget":                      says("The smallest valid window does not fit; it is given nevertheless."),
		"leftOut":                         says("Messages of the path that are neither shown nor covered by a shown summary."),
		"explanation":                     says("One line a message and summary: shown or not, and why."),
		"explain":                         says("Ask for `explanation`."),
		"asOfSeq":                         atLeast(1, "Answer as when the head was this seq."),
		"prompt":                          says("A hint; never stored."),
		"model":                           says("The model's id."),
		"availableTools":                  says("Names of the tools that the model has."),
		"force":                           says("Compact even under the threshold, whenever something older than the tail can be summarized smaller."),
		"currentTokenCount":               atLeast(0, "The prompt's size as the host saw it."),
		"compactionTarget":                says("`budget` or `threshold`."),
		"customInstructions":              says("What the summary should mind."),
		"rotateSession":                   says("Ask for a successor: a new host session id for what follows the compaction. The native runtime, which `legacy` uses, heeds it."),
		"dryRun":                          says("Answer with the plan and write nothing."),
		"compaction":                      says("What the turn set in motion: `none`, `scheduled` or `running`."),
		"status":                          says("`committed`, or `duplicate` for a turn that was stored before."),
		"keepFromSeq":                     atLeast(1, "The first seq that stays; absent, nothing does."),
		"newSessionKey":                   says("Where the fork begins; nothing may live there."),
		"atSeq":                           atLeast(1, "A seq up to the parent's head: the fork sees what was there then."),
		"childSessionKey":                 says("Where the child's turns will come; nothing may live there."),
		"childSessionId":                  says("The host's transcript id of the child."),
		"contextMode":                     says("`isolated`, the default, or `fork`."),
		"ttlMs":                           atLeast(0, "How long the child may take to write first, in milliseconds; 0 is a day."),
		"preparationId":                   says("Names the preparation; the same for a repeated one."),
		"lineage":                         says("Of whom the session descends, and who descends from it."),
		"Lineage.children":                says("The sessions that descend directly, newest first, at most 100."),
		"expiresAt":                       says("When a child that never wrote is removed."),
		"endReason":                       says("Why the child ended last."),
		"toSeq":                           atLeast(1, "Any seq up to the head."),
		"firstKeptEntryId":                says("The host's entry id of the oldest message that stays, else its seq as a string."),
		"debt":                            says("Tokens that a compaction is owed for; 0 when none is."),
		"tokens":                          says("Tokens by estimate."),
		"live":                            says("The summary stands in the window now."),
		"covers":                          says("All messages under it, as ranges of seqs."),
		"children":                        says("The summaries it covers directly."),
		"next":                            says("The `after` of the next page; null at the end."),
		"cursor":                          says("The `after` of the next page, also when this one is empty. Opaque."),
		"message":                         says("The message."),
		"TranscriptParams.entries":        says("Raw entries of the host's transcript, in its order: messages, resets, leaf moves, compactions and all others, each as the host keeps it."),
		"TranscriptParams.cursor":         says("The host's bookmark behind these entries; kept with them, never read. Absent: the kept one stays."),
		"TranscriptResult.cursor":         says("The bookmark that is kept now; null when none is."),
		"TranscriptCursor.cursor":         says("Where the host goes on reading; null when nothing was synced yet."),
		"lifecycleRevision":               says("The host's lifecycle revision; it changes with every reset."),
		"stored":                          says("Entries that were never seen before."),
		"TranscriptResult.messages":       says("How many of the stored entries are messages."),
		"duplicates":                      says("Entries that were there: read before, copied from another transcript of the key, or stored as part of a turn. With `stored` they are all entries."),
		"data":                            says("What an event that is no message says."),
		"parentSeq":                       says("The message that this one follows."),
		"EventRow.sessionId":              says("The host's transcript id that the event came under."),
		"SessionRow.tokens":               says("The window's size by estimate, before any trimming."),
		"SessionDetail.tokens":            says("The window's size by estimate, before any trimming."),
		"nextSessionId":                   says("The host's transcript id after the reset; it becomes the session's."),
		"Check.required":                  says("The node is not ready without it."),
		"Problem.type":                    says("Ends in a slug that never changes."),
		"Problem.status":                  says("The HTTP status."),
		"Problem.field":                   says("What to change, in the request's own words."),
		"Problem.limit":                   says("The limit that was passed."),
		"Problem.offset":                  says("The byte of the body at which the trouble was seen."),
		"Problem.seq":                     says("The event that a known key already names."),
		"Problem.checks":                  says("A node's checks, where it is not ready."),
		"CompactParams.currentTokenCount": atLeast(1, "The prompt's size as the host saw it."),
		"UndoRequest.epoch":               atLeast(1, "Undo the compaction that began this epoch; absent, the newest one."),
		"SessionRow.tokenBudget": says(
			"The budget that counts where a call names none."),
		"SessionDetail.tokenBudget": says("The budget that counts where a call names none."),
	}
}
