import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
/** Never rejects. */
export declare function compact(turn: Turn, params: host.CompactParams): Promise<host.CompactResult>;
/** The size that a compaction is to reach: what the host's prompt leaves for history. */
export declare function compactTarget(params: host.CompactParams, history: number | undefined): number | undefined;
