import type { SessionParams } from "./host.ts";
import type { Service } from "./service.ts";
import { type Reader } from "./transcript.ts";
export interface SyncResult {
    /** Whether the end of the host's transcript was reached. */
    complete: boolean;
    stored: number;
    /** Why the end was not reached. */
    reason?: string;
}
export interface SyncOptions {
    /** Milliseconds for all of it; what is left goes with the next sync. */
    deadline: number;
    signal?: AbortSignal;
    probe?: boolean;
    reader?: Reader;
    now?: () => number;
}
/** Sends what the service does not have. Rejects only after an abort. */
export declare function sync(service: Service, key: string, params: SessionParams, options: SyncOptions): Promise<SyncResult>;
