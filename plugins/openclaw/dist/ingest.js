// Messages that come one by one or in batches, from hosts that know neither
// durable turns nor after-turn calls.
import { createHash, randomUUID } from "node:crypto";
import { message } from "./errors.js";
/** Answers how many were new. Never rejects. */
export async function ingestBatch(turn, params) {
    const key = turn.key(params);
    const { client, config, gatewayId, log } = turn.service;
    try {
        const { ingestedCount } = await turn.clock.measure(() => client.call("POST /v1/sessions/{key}/ingest-batch", key, {
            body: {
                sessionId: params.sessionId,
                gatewayId,
                messages: params.messages,
                isHeartbeat: params.isHeartbeat || undefined,
                idempotencyKeys: params.messages.map((m) => messageKey(gatewayId, params.sessionId, m)),
            },
            deadline: turn.clock.deadline(config.deadlines.commit, true),
            probe: true,
        }));
        return ingestedCount ?? 0;
    }
    catch (error) {
        log.warn(`engined: ${params.messages.length} messages of ${key} were not taken: ${message(error)}`);
        return 0;
    }
}
/** A key that names a message however often it is sent; a random one where nothing sets it apart. */
function messageKey(gatewayId, sessionId, m) {
    const own = m.idempotencyKey ?? m.responseId ?? (typeof m.timestamp === "number" ? JSON.stringify(m) : undefined);
    if (typeof own !== "string")
        return randomUUID();
    return `${gatewayId}:${createHash("sha256").update(`${sessionId}\n${m.role}\n${own}`).digest("hex").slice(0, 40)}`;
}
