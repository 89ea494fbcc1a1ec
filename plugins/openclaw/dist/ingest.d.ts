import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
export type IngestParams = host.SessionParams & {
    messages: host.HostMessage[];
    isHeartbeat?: boolean;
};
/** Answers how many were new. Never rejects. */
export declare function ingestBatch(turn: Turn, params: IngestParams): Promise<number>;
