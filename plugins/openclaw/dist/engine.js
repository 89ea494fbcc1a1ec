// The context engine that the host sees: a thin one. It decides nothing about
// context; it passes calls on, in time, and gives the host's own messages back
// where the service does not answer. The host makes an instance per turn.
var __rewriteRelativeImportExtension = (this && this.__rewriteRelativeImportExtension) || function (path, preserveJsx) {
    if (typeof path === "string" && /^\.\.?\//.test(path)) {
        return path.replace(/\.(tsx)$|((?:\.d)?)((?:\.[^./]+?)?)\.([cm]?)ts$/i, function (m, tsx, d, ext, cm) {
            return tsx ? preserveJsx ? ".jsx" : ".js" : d && (!ext || !cm) ? m : (d + ext + "." + cm.toLowerCase() + "js");
        });
    }
    return path;
};
import { createHash, randomUUID } from "node:crypto";
import { Budget, estimate } from "./budget.js";
import { asProblem, message } from "./client.js";
import { behind, missing } from "./livetail.js";
import { sync } from "./sync.js";
import { entriesOf, openTranscript } from "./transcript.js";
import { TurnClock } from "./turn.js";
import { version } from "./version.js";
import * as wire from "./wire.js";
export const info = {
    id: "engined",
    name: "engined",
    version,
    ownsCompaction: true,
    turnMaintenanceMode: "background",
    acceptedHostParams: ["sessionKey", "prompt", "sessionTarget", "runtimeContext", "abortSignal"],
    transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
};
export const seams = {
    open: openTranscript,
    async compact(params) {
        const name = "openclaw/plugin-sdk/core";
        const sdk = (await import(__rewriteRelativeImportExtension(name)));
        return sdk.delegateCompactionToRuntime(params);
    },
};
export class Engine {
    info = info;
    #service;
    #seams;
    #clock;
    #budget;
    #begun = Date.now();
    #bootstrapped = false;
    /** Where the running turn begins in the messages of a host without a fence. */
    #turnStart;
    #tools;
    /** `wholeWindow`: this host's budgets are the model's whole window. */
    constructor(service, wholeWindow, from = seams) {
        const { deadlines, reserveTokens } = service.config;
        this.#service = service;
        this.#seams = from;
        this.#clock = new TurnClock(deadlines.turn, deadlines.commit);
        this.#budget = new Budget(wholeWindow, reserveTokens);
    }
    /** Brings the host's transcript to the service. Never throws: without it the host's messages serve. */
    async bootstrap(params) {
        const key = this.#key(params);
        this.#bootstrapped = true;
        this.#budget.restart();
        const result = await this.#sync(key, params, this.#service.config.deadlines.sync);
        if (!result.complete)
            this.#service.log.warn(`engined: sync of ${key}: ${result.reason}`);
        return { bootstrapped: result.complete, importedMessages: result.stored, reason: result.reason };
    }
    /** The window of the service, or else the host's own messages. */
    async assemble(params) {
        const key = this.#key(params);
        const { client, config, gatewayId } = this.#service;
        const note = this.#service.note(key);
        const probe = this.#clock.first();
        const own = Array.isArray(params.messages) ? params.messages : [];
        const turn = this.#turnStart === undefined ? [] : own.slice(this.#turnStart);
        this.#tools ??= wire.ownTools(params.availableTools);
        const budget = this.#budget.next(params.tokenBudget, turn.length > 0 ? estimate(turn) : 0);
        let answer;
        try {
            const wait = () => this.#clock.deadline(config.deadlines.assemble);
            const settled = await this.#clock.measure(() => this.#service.settle(key, wait(), probe));
            if (!settled)
                return this.#fromHost(key, own, "the service does not know of a reset yet");
            answer = await this.#clock.measure(() => client.call("POST /v1/sessions/{key}/assemble", key, {
                body: {
                    sessionId: params.sessionId,
                    gatewayId,
                    tokenBudget: budget,
                    model: params.model,
                    citationsMode: params.citationsMode,
                    availableTools: this.#tools,
                },
                deadline: wait(),
                signal: params.abortSignal,
                probe,
            }));
        }
        catch (error) {
            params.abortSignal?.throwIfAborted();
            return this.#fromHost(key, own, message(error));
        }
        if (!Array.isArray(answer?.messages) || !answer.messages.every((m) => m && typeof m === "object" && "role" in m)) {
            return this.#fromHost(key, own, "the service's window has no messages");
        }
        const window = this.#withoutPrompt(answer.messages, params.prompt);
        const tail = this.#tail(window, own, turn, note.synced === false);
        if (!tail)
            return this.#fromHost(key, own, `the transcript is not in the service yet (${note.syncFailure})`);
        const messages = tail.length > 0 ? [...window, ...tail] : window;
        const tokens = answer.estimatedTokens + estimate(tail);
        if (budget !== undefined)
            note.budget = budget;
        note.sessionId = params.sessionId;
        note.served = { by: "engined", at: Date.now(), messages: messages.length, tokens, epoch: answer.epoch };
        if (answer.overBudget) {
            this.#service.log.warn(`engined: ${key} does not fit: ${answer.overBudget.needed} tokens of ${answer.overBudget.budget}`);
        }
        return {
            messages,
            estimatedTokens: tokens,
            systemPromptAddition: answer.systemPromptAddition,
            promptAuthority: "assembled",
            contextProjection: answer.contextProjection,
        };
    }
    /**
     * Stores an accepted turn. Throws where the host's outbox must try again, and
     * only there: a turn that is refused for ever would block the session.
     */
    async commitTurn(params) {
        const key = this.#key(params);
        const { client, config, gatewayId, log } = this.#service;
        const note = this.#service.note(key);
        this.#clock.first();
        try {
            const answer = await this.#clock.measure(() => client.call("POST /v1/sessions/{key}/commit-turn", key, {
                body: {
                    sessionId: params.sessionId,
                    gatewayId,
                    advancementKey: params.advancementKey,
                    admission: wire.anchor(params.admission),
                    terminal: wire.anchor(params.terminal),
                    messages: params.messages,
                    isHeartbeat: params.isHeartbeat || undefined,
                    usage: wire.usage(params.messages),
                    tokenBudget: note.budget,
                    runtimeContext: wire.runtimeContext(params.runtimeContext, note.budget),
                },
                deadline: this.#clock.deadline(config.deadlines.commit, true),
                probe: true,
            }));
            const status = answer.status === "duplicate" ? "duplicate" : "committed";
            note.committed = { status, at: Date.now() };
            return { status };
        }
        catch (error) {
            if (asProblem(error)?.permanent) {
                log.error(`engined: a turn of ${key} was refused for ever and is left out: ${message(error)}`);
                note.committed = { status: `refused: ${message(error)}`, at: Date.now() };
                return { status: "duplicate" };
            }
            note.committed = { status: `to be tried again: ${message(error)}`, at: Date.now() };
            throw error;
        }
    }
    /** The older family: tells what a turn added, step by step. Never throws. */
    async afterTurn(params) {
        this.#turnStart ??= params.prePromptMessageCount;
        const last = params.messages.at(-1);
        // In the tool loop the running turn is this plugin's live tail; it is told whole at its end.
        if (!last || last.role !== "assistant" || hasCalls(last))
            return;
        const key = this.#key(params);
        const { client, config, gatewayId, log } = this.#service;
        const note = this.#service.note(key);
        this.#clock.first();
        const wait = () => this.#clock.deadline(config.deadlines.commit, true);
        try {
            const reader = await this.#seams.open(params);
            // With a transcript the turn goes as entries, which have ids; else as messages.
            const asEntries = reader !== undefined;
            if (asEntries && params.isHeartbeat && (await this.#commitHeartbeat(key, params, reader, wait))) {
                note.committed = { status: "committed", at: Date.now() };
                return;
            }
            if (asEntries) {
                const result = await this.#clock.measure(() => sync(this.#service, key, params, { deadline: wait(), probe: true, reader }));
                if (!result.complete)
                    throw new Error(result.reason);
            }
            await this.#clock.measure(() => client.call("POST /v1/sessions/{key}/after-turn", key, {
                body: {
                    sessionId: params.sessionId,
                    gatewayId,
                    messages: asEntries ? [] : params.messages,
                    prePromptMessageCount: asEntries ? 0 : params.prePromptMessageCount,
                    isHeartbeat: params.isHeartbeat || undefined,
                    tokenBudget: note.budget,
                    usage: wire.usage(params.messages),
                    runtimeContext: wire.runtimeContext(params.runtimeContext, note.budget),
                },
                deadline: wait(),
                probe: true,
            }));
            note.committed = { status: "committed", at: Date.now() };
        }
        catch (error) {
            note.committed = { status: `left to the next sync: ${message(error)}`, at: Date.now() };
            log.warn(`engined: a turn of ${key} is left to the next sync: ${message(error)}`);
        }
    }
    /**
     * Transcript entries do not say that they are a heartbeat's, a commit does. Its
     * anchors are the entries' own ids, so the next sync knows them again. Answers
     * false where the entries are not to be found.
     */
    async #commitHeartbeat(key, params, reader, wait) {
        const turn = params.messages.slice(this.#turnStart);
        const range = await entriesOf(reader, turn[0], turn.at(-1));
        const first = range?.[0];
        const last = range?.at(-1);
        if (!range || !first || !last)
            return false;
        const { client, gatewayId } = this.#service;
        const { sessionId } = params;
        await this.#clock.measure(() => client.call("POST /v1/sessions/{key}/commit-turn", key, {
            body: {
                sessionId,
                gatewayId,
                advancementKey: `${gatewayId}:${sessionId}:${last.id}`,
                admission: { sessionId, entryId: first.id, role: "user" },
                terminal: { sessionId, entryId: last.id },
                messages: range.map((e) => e.message),
                isHeartbeat: true,
                usage: wire.usage(turn),
                tokenBudget: this.#service.note(key).budget,
                runtimeContext: wire.runtimeContext(params.runtimeContext, this.#service.note(key).budget),
            },
            deadline: wait(),
            probe: true,
        }));
        return true;
    }
    async ingest(params) {
        const { ingestedCount } = await this.ingestBatch({ ...params, messages: [params.message] });
        return { ingested: ingestedCount > 0 };
    }
    async ingestBatch(params) {
        const key = this.#key(params);
        const { client, config, gatewayId, log } = this.#service;
        try {
            const answer = await this.#clock.measure(() => client.call("POST /v1/sessions/{key}/ingest-batch", key, {
                body: {
                    sessionId: params.sessionId,
                    gatewayId,
                    messages: params.messages,
                    isHeartbeat: params.isHeartbeat || undefined,
                    idempotencyKeys: params.messages.map((m) => messageKey(gatewayId, params.sessionId, m)),
                },
                deadline: this.#clock.deadline(config.deadlines.commit, true),
                probe: true,
            }));
            return { ingestedCount: answer.ingestedCount };
        }
        catch (error) {
            log.warn(`engined: ${params.messages.length} messages of ${key} were not taken: ${message(error)}`);
            return { ingestedCount: 0 };
        }
    }
    /** Compacts now. Never throws; with the service away the host's own compaction steps in. */
    async compact(params) {
        const key = this.#key(params);
        const { client, config, gatewayId, log } = this.#service;
        const trigger = params.runtimeContext?.trigger;
        const signal = params.abortSignal;
        try {
            // Within a turn the transcript already shows the message being answered,
            // which must not be in the window; outside of one it may be read to its end.
            if (trigger === "manual") {
                await sync(this.#service, key, params, { deadline: config.deadlines.compact / 5, signal, probe: true });
            }
            const answer = await client.call("POST /v1/sessions/{key}/compact", key, {
                body: {
                    sessionId: params.sessionId,
                    gatewayId,
                    tokenBudget: compactTarget(params, this.#service.note(key).budget),
                    force: params.force,
                    currentTokenCount: params.currentTokenCount,
                    compactionTarget: params.compactionTarget,
                    customInstructions: params.customInstructions,
                    runtimeContext: wire.runtimeContext(params.runtimeContext),
                },
                deadline: config.deadlines.compact,
                signal,
                probe: true,
            });
            const { ok, compacted, reason, result } = answer;
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
        catch (error) {
            if (signal?.aborted)
                return { ok: false, compacted: false, reason: "the compaction was aborted" };
            const why = message(error);
            const problem = asProblem(error);
            if (problem && problem.status < 500)
                return { ok: false, compacted: false, reason: why };
            log.warn(`engined: compaction of ${key} is left to the host: ${why}`);
            try {
                return await this.#seams.compact(params);
            }
            catch (second) {
                return { ok: false, compacted: false, reason: `${why}; the host's own compaction failed too: ${message(second)}` };
            }
        }
    }
    /** Housekeeping off the turn's path: the rest of a long first sync. */
    async maintain(params) {
        const nothing = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
        if (params.runtimeContext?.allowDeferredCompactionExecution !== true)
            return { ...nothing, reason: "nothing to do on the turn's path" };
        const key = this.#key(params);
        const { client, config, gatewayId } = this.#service;
        const signal = params.abortSignal;
        try {
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
    }
    /** Tells of a child before it starts. A child is started whatever the service says. */
    async prepareSubagentSpawn(params) {
        const parent = this.#key({ sessionKey: params.parentSessionKey, sessionId: "" });
        const child = this.#key({ sessionKey: params.childSessionKey, sessionId: "" });
        const { client, config, gatewayId, log } = this.#service;
        let prepared = false;
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
            prepared = true;
        }
        catch (error) {
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
    async onSubagentEnded(params) {
        const child = this.#key({ sessionKey: params.childSessionKey, sessionId: "" });
        const { client, config, log } = this.#service;
        try {
            await client.call("POST /v1/sessions/{key}/subagents/{child}/ended", child, {
                path: { child },
                body: { reason: params.reason },
                deadline: config.deadlines.other,
            });
        }
        catch (error) {
            log.warn(`engined: the end of ${child} was not told: ${message(error)}`);
        }
    }
    /** Nothing to let go of: all that an instance uses outlives it. */
    async dispose() { }
    #key(params) {
        return this.#service.key(params.sessionKey, params.sessionId);
    }
    async #sync(key, params, wish) {
        const probe = this.#clock.first();
        const reader = await this.#seams.open(params).catch(() => undefined);
        return this.#clock.measure(() => sync(this.#service, key, params, { deadline: this.#clock.deadline(wish), probe, reader }));
    }
    #fromHost(key, messages, why) {
        this.#service.note(key).served = { by: "host", why, at: Date.now(), messages: messages.length };
        this.#service.log.warn(`engined: ${key} is served from the host's messages: ${why}`);
        return { messages, estimatedTokens: estimate(messages), promptAuthority: "assembled" };
    }
    /** The messages to show behind the window; undefined: the window cannot be trusted to have the turn before. */
    #tail(window, own, turn, unsynced) {
        if (!unsynced || !this.#bootstrapped)
            return missing(window, turn);
        // What the service lacks may reach further back than this turn; a reset may be among it.
        if (own.length === 0)
            return window.length === 0 ? [] : undefined;
        return window.length === 0 ? undefined : behind(window, own);
    }
    /** The host puts the prompt behind the window itself; a retry's sync may have brought it already. */
    #withoutPrompt(window, prompt) {
        const last = window.at(-1);
        if (!prompt || last?.role !== "user" || typeof last.timestamp !== "number" || last.timestamp < this.#begun)
            return window;
        const text = plainText(last);
        return text !== "" && prompt.includes(text) ? window.slice(0, -1) : window;
    }
}
function plainText(message) {
    if (typeof message.content === "string")
        return message.content;
    if (!Array.isArray(message.content))
        return "";
    return message.content.map((b) => (b?.type === "text" ? b.text : "")).join("\n");
}
function hasCalls(message) {
    return (Array.isArray(message.content) &&
        message.content.some((b) => ["toolCall", "toolUse", "functionCall"].includes(b?.type ?? "")));
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
/** A key that names a message however often it is sent; a random one where nothing sets it apart. */
function messageKey(gatewayId, sessionId, m) {
    const own = m.idempotencyKey ?? m.responseId ?? (typeof m.timestamp === "number" ? JSON.stringify(m) : undefined);
    if (typeof own !== "string")
        return randomUUID();
    return `${gatewayId}:${createHash("sha256").update(`${sessionId}\n${m.role}\n${own}`).digest("hex").slice(0, 40)}`;
}
