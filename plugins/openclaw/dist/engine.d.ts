import type * as host from "./host.ts";
import { type IngestParams } from "./ingest.ts";
import { type HostSeams } from "./seams.ts";
import type { Service } from "./service.ts";
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
    bootstrap(params: host.SessionParams): Promise<host.BootstrapResult>;
    assemble(params: host.AssembleParams): Promise<host.AssembleResult>;
    commitTurn(params: host.CommitTurnParams): Promise<{
        status: "committed" | "duplicate";
    }>;
    afterTurn(params: host.AfterTurnParams): Promise<void>;
    ingest(params: host.SessionParams & {
        message: host.HostMessage;
        isHeartbeat?: boolean;
    }): Promise<{
        ingested: boolean;
    }>;
    ingestBatch(params: IngestParams): Promise<{
        ingestedCount: number;
    }>;
    compact(params: host.CompactParams): Promise<host.CompactResult>;
    maintain(params: host.SessionParams): Promise<host.MaintainResult>;
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
