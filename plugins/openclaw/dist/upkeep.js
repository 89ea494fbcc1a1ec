// Before and after a turn: the host's transcript is brought to the service, first
// what fits the turn's time, then, off its path, the rest of a long one.
import { message } from "./errors.js";
import { sync } from "./sync.js";
/** Never rejects: without the service the host's messages serve. */
export async function bootstrap(turn, params) {
    const key = turn.key(params);
    const { service, clock } = turn;
    turn.bootstrapped = true;
    turn.budget.restart();
    service.note(key).sessionFile = params.sessionFile;
    const probe = clock.first();
    const reader = await turn.seams.open(params).catch(() => undefined);
    const result = await clock.measure(() => sync(service, key, params, { deadline: clock.deadline(service.config.deadlines.sync), probe, reader, now: turn.seams.now }));
    said(turn, key, result);
    return { bootstrapped: result.complete, importedMessages: result.stored, reason: result.reason };
}
/** What the turn's path left over. Never rejects. */
export async function maintain(turn, params) {
    const nothing = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
    if (params.runtimeContext?.allowDeferredCompactionExecution !== true)
        return { ...nothing, reason: "nothing to do on the turn's path" };
    const key = turn.key(params);
    const { service } = turn;
    const { client, config, gatewayId } = service;
    const signal = params.abortSignal;
    const note = service.note(key);
    try {
        if (note.synced === false) {
            const reader = await turn.seams.open(params).catch(() => undefined);
            said(turn, key, await sync(service, key, params, { deadline: config.deadlines.maintain, signal, reader, now: turn.seams.now }));
        }
        await client.call("POST /v1/sessions/{key}/maintain", key, {
            body: { sessionId: params.sessionId, gatewayId },
            deadline: config.deadlines.other,
            signal,
        });
        return { ...nothing, reason: "done by the service" };
    }
    catch (error) {
        return { ...nothing, reason: message(error) };
    }
    finally {
        note.maintained = Date.now();
    }
}
function said(turn, key, result) {
    const topic = `sync ${key}`;
    if (result.complete)
        turn.service.troubles.end(topic, `the transcript of ${key} is all in the service`);
    else
        turn.service.troubles.begin(topic, `sync of ${key}: ${result.reason}`, key);
}
