import type * as host from "./host.ts";
import type { Service } from "./service.ts";
import { type Reader } from "./transcript.ts";
export declare const info: {
    readonly id: "engined";
    readonly name: "engined";
    readonly version: "0.1.0";
    readonly ownsCompaction: true;
    readonly turnMaintenanceMode: "background";
    readonly acceptedHostParams: readonly ["sessionKey", "prompt", "sessionTarget", "runtimeContext", "abortSignal"];
    readonly transcriptSemantics: {
        readonly currentTurnFence: "before-current-turn-entry-v1";
        readonly turnAdvancementIdempotency: "atomic-idempotent-v1";
    };
};
type Compaction = Promise<host.CompactResult>;
/** What the engine needs of the host beside its calls; tests put their own in. */
export interface HostSeams {
    open(params: host.SessionParams): Promise<Reader | undefined>;
    /** The host's own compaction, for when the service is away. */
    compact(params: host.CompactParams): Compaction;
}
export declare const seams: HostSeams;
export declare class Engine {
    #private;
    readonly info: {
        readonly id: "engined";
        readonly name: "engined";
        readonly version: "0.1.0";
        readonly ownsCompaction: true;
        readonly turnMaintenanceMode: "background";
        readonly acceptedHostParams: readonly ["sessionKey", "prompt", "sessionTarget", "runtimeContext", "abortSignal"];
        readonly transcriptSemantics: {
            readonly currentTurnFence: "before-current-turn-entry-v1";
            readonly turnAdvancementIdempotency: "atomic-idempotent-v1";
        };
    };
    /** `wholeWindow`: this host's budgets are the model's whole window. */
    constructor(service: Service, wholeWindow: boolean, from?: HostSeams);
    /** Brings the host's transcript to the service. Never throws: without it the host's messages serve. */
    bootstrap(params: host.SessionParams): Promise<{
        bootstrapped: boolean;
        importedMessages: number;
        reason?: string;
    }>;
    /** The window of the service, or else the host's own messages. */
    assemble(params: host.AssembleParams): Promise<host.AssembleResult>;
    /**
     * Stores an accepted turn. Throws where the host's outbox must try again, and
     * only there: a turn that is refused for ever would block the session.
     */
    commitTurn(params: host.CommitTurnParams): Promise<{
        status: "committed" | "duplicate";
    }>;
    /** The older family: tells what a turn added, step by step. Never throws. */
    afterTurn(params: host.AfterTurnParams): Promise<void>;
    ingest(params: host.SessionParams & {
        message: host.HostMessage;
        isHeartbeat?: boolean;
    }): Promise<{
        ingested: boolean;
    }>;
    ingestBatch(params: host.SessionParams & {
        messages: host.HostMessage[];
        isHeartbeat?: boolean;
    }): Promise<{
        ingestedCount: number;
    }>;
    /** Compacts now. Never throws; with the service away the host's own compaction steps in. */
    compact(params: host.CompactParams): Promise<host.CompactResult>;
    /** Housekeeping off the turn's path: the rest of a long first sync. */
    maintain(params: host.SessionParams): Promise<host.MaintainResult>;
    /** Tells of a child before it starts. A child is started whatever the service says. */
    prepareSubagentSpawn(params: host.SpawnParams): Promise<{
        rollback(): Promise<void>;
    }>;
    onSubagentEnded(params: {
        childSessionKey: string;
        reason: host.SubagentEndReason;
    }): Promise<void>;
    /** Nothing to let go of: all that an instance uses outlives it. */
    dispose(): Promise<void>;
}
/** The size that a compaction is to reach: what the host's prompt leaves for history. */
export declare function compactTarget(params: host.CompactParams, history: number | undefined): number | undefined;
export {};
