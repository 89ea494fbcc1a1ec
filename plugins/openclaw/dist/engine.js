// The context engine that the host sees: a thin one. It decides nothing about
// context; it passes calls on, in time, and gives the host's own messages back
// where the service does not answer. The host makes an instance per turn.
import { afterTurn, commitTurn } from "./commit.js";
import { compact } from "./compaction.js";
import { ingestBatch } from "./ingest.js";
import { seams } from "./seams.js";
import { ended, prepare } from "./subagents.js";
import { Turn } from "./turn.js";
import { bootstrap, maintain } from "./upkeep.js";
import { version } from "./version.js";
import { assemble } from "./window.js";
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
export class Engine {
    info = info;
    #turn;
    /** `wholeWindow`: this host's budgets are the model's whole window. */
    constructor(service, wholeWindow, from = seams) {
        this.#turn = new Turn(service, wholeWindow, from);
    }
    bootstrap(params) {
        return bootstrap(this.#turn, params);
    }
    assemble(params) {
        return assemble(this.#turn, params);
    }
    commitTurn(params) {
        return commitTurn(this.#turn, params);
    }
    afterTurn(params) {
        return afterTurn(this.#turn, params);
    }
    async ingest(params) {
        return { ingested: (await ingestBatch(this.#turn, { ...params, messages: [params.message] })) > 0 };
    }
    async ingestBatch(params) {
        return { ingestedCount: await ingestBatch(this.#turn, params) };
    }
    compact(params) {
        return compact(this.#turn, params);
    }
    maintain(params) {
        return maintain(this.#turn, params);
    }
    prepareSubagentSpawn(params) {
        return prepare(this.#turn, params);
    }
    onSubagentEnded(params) {
        return ended(this.#turn, params.childSessionKey, params.reason);
    }
    /** Nothing to let go of: all that an instance uses outlives it. */
    async dispose() { }
}
