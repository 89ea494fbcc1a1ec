import type * as host from "./host.ts";
import { type Reader } from "./transcript.ts";
export interface HostSeams {
    open(params: host.SessionParams): Promise<Reader | undefined>;
    /** The host's own compaction, for when the service is away. */
    compact(params: host.CompactParams): Promise<host.CompactResult>;
    /** A clock that never goes back, in ms. */
    now(): number;
}
export declare const seams: HostSeams;
