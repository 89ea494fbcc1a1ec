// Sub-agents: the service is told of a child before it starts and when it ended.
// A child is started whatever the service says.
import { asProblem, message } from "./errors.js";
export async function prepare(turn, params) {
    const parent = turn.key({ sessionKey: params.parentSessionKey });
    const child = turn.key({ sessionKey: params.childSessionKey });
    const { client, config, gatewayId, log } = turn.service;
    let prepared = true;
    try {
        await client.call("POST /v1/sessions/{key}/subagents", parent, {
            body: {
                childSessionKey: child,
                // The host copies the parent's transcript to a forked child; the service
                // knows the copied entries. It adds what other gateways said to the parent.
                contextMode: params.contextMode ?? "isolated",
                ttlMs: params.ttlMs,
                sessionId: params.parentSessionId,
                gatewayId,
            },
            deadline: config.deadlines.other,
            probe: true,
        });
    }
    catch (error) {
        // One that did not answer may have carried it out.
        prepared = asProblem(error) === undefined;
        log.warn(`engined: ${child} starts without its parent being known: ${message(error)}`);
    }
    return {
        rollback: async () => {
            if (!prepared)
                return;
            try {
                await client.call("POST /v1/sessions/{key}/subagents/{child}/rollback", parent, {
                    path: { child },
                    body: {},
                    deadline: config.deadlines.other,
                    probe: true,
                });
            }
            catch (error) {
                log.warn(`engined: the preparation of ${child} stays until it expires: ${message(error)}`);
            }
        },
    };
}
export async function ended(turn, childSessionKey, reason) {
    const child = turn.key({ sessionKey: childSessionKey });
    const { client, config, log } = turn.service;
    try {
        await client.call("POST /v1/sessions/{key}/subagents/{child}/ended", child, {
            path: { child },
            body: { reason },
            deadline: config.deadlines.other,
        });
    }
    catch (error) {
        log.warn(`engined: the end of ${child} was not told: ${message(error)}`);
    }
}
