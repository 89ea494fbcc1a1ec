import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
/** Rejects only after an abort. */
export declare function assemble(turn: Turn, params: host.AssembleParams): Promise<host.AssembleResult>;
