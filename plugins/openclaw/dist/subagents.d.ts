import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
export declare function prepare(turn: Turn, params: host.SpawnParams): Promise<{
    rollback(): Promise<void>;
}>;
export declare function ended(turn: Turn, childSessionKey: string, reason: host.SubagentEndReason): Promise<void>;
