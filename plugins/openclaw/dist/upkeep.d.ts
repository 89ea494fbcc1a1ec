import type * as host from "./host.ts";
import type { Turn } from "./turn.ts";
/** Never rejects: without the service the host's messages serve. */
export declare function bootstrap(turn: Turn, params: host.SessionParams): Promise<host.BootstrapResult>;
/** What the turn's path left over. Never rejects. */
export declare function maintain(turn: Turn, params: host.SessionParams): Promise<host.MaintainResult>;
