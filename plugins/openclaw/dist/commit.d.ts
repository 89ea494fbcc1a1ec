import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
/**
 * Stores an accepted turn. Rejects where the host's outbox must try again, and
 * only there: a turn that is refused for ever would block the session.
 */
export declare function commitTurn(turn: Turn, params: host.CommitTurnParams): Promise<{
    status: "committed" | "duplicate";
}>;
/** The older family: tells what a turn added, step by step. Never rejects. */
export declare function afterTurn(turn: Turn, params: host.AfterTurnParams): Promise<void>;
