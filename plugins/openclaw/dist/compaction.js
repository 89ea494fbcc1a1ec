// A compaction that the host or the user asks for: the service's, or the host's
// own where the service cannot change what the model is shown next.
import { asProblem, message } from "./errors.js";
import { sync } from "./sync.js";
import * as wire from "./wire.js";
/** Never rejects. */
export async function compact(turn, params) {
    const key = turn.key(params);
    const { service, seams } = turn;
    const signal = params.abortSignal;
    let why;
    try {
        const unsynced = await unsyncedReason(turn, key, params);
        if (unsynced === undefined)
            return await byService(turn, key, params);
        why = unsynced;
    }
    catch (error) {
        if (signal?.aborted)
            return { ok: false, compacted: false, reason: "the compaction was aborted" };
        why = message(error);
        const problem = asProblem(error);
        if (problem?.permanent)
            return { ok: false, compacted: false, reason: why };
    }
    // What the host compacts is not to come back from an earlier window.
    service.windows.forget(key);
    service.log.warn(`engined: compaction of ${key} is left to the host: ${why}`);
    try {
        return await seams.compact(params);
    }
    catch (error) {
        return { ok: false, compacted: false, reason: `${why}; the host's own compaction failed too: ${message(error)}` };
    }
}
/**
 * Why a compaction at the service would change nothing: the newest window was the
 * host's own, since the service lacks a part of the transcript, and so will be the
 * next one.
 */
async function unsyncedReason(turn, key, params) {
    const { service } = turn;
    const { deadlines } = service.config;
    const note = service.note(key);
    // Within a turn the transcript already shows the message being answered, which
    // must not be in the window; outside of one it may be read to its end.
    if (params.runtimeContext?.trigger === "manual") {
        await sync(service, key, params, { deadline: deadlines.compact / 5, signal: params.abortSignal, probe: true });
    }
    return note.synced === false && note.served !== undefined && note.served.by !== "engined" ? `the transcript is not in the service yet (${note.syncFailure})` : undefined;
}
async function byService(turn, key, params) {
    const { client, config, gatewayId } = turn.service;
    const { ok, compacted, reason, result } = await client.call("POST /v1/sessions/{key}/compact", key, {
        body: {
            sessionId: params.sessionId,
            gatewayId,
            tokenBudget: compactTarget(params, turn.service.note(key).budget),
            force: params.force,
            currentTokenCount: params.currentTokenCount,
            compactionTarget: params.compactionTarget,
            customInstructions: params.customInstructions,
            runtimeContext: wire.runtimeContext(params.runtimeContext),
        },
        deadline: config.deadlines.compact,
        signal: params.abortSignal,
        probe: true,
    });
    if (typeof ok !== "boolean" || typeof compacted !== "boolean")
        throw new Error("the node's answer to a compaction is not known");
    if (!result)
        return { ok, compacted, reason };
    return {
        ok,
        compacted,
        reason,
        // Without a session id: the session goes on, it is not replaced by another.
        result: {
            summary: result.summary,
            firstKeptEntryId: result.firstKeptEntryId,
            tokensBefore: result.tokensBefore ?? 0,
            tokensAfter: result.tokensAfter,
            details: result.details,
        },
    };
}
/** The size that a compaction is to reach: what the host's prompt leaves for history. */
export function compactTarget(params, history) {
    const given = params.tokenBudget;
    if (!given || given <= 0)
        return history;
    let target = Math.min(given, history ?? given / 2);
    const counted = params.currentTokenCount;
    // The provider counts more than we did: aim as much lower.
    if (counted && counted > given)
        target *= given / counted;
    return Math.max(1, Math.floor(target));
}
