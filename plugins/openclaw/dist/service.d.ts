import { Client } from "./client.ts";
import { Troubles } from "./troubles.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./host.ts";
import { Pending, type Step } from "./pending.ts";
import type { PageLimits } from "./transcript.ts";
import { Windows } from "./windows.ts";
/** What is known of a session in this process; the service knows the rest. */
export interface SessionNote {
    sessionId?: string;
    /** The host's transcript, where it is a file. */
    sessionFile?: string;
    /** Whether the last sync reached the end of the host's transcript. */
    synced?: boolean;
    syncFailure?: string;
    /** The size of the sync's pages, where full ones took too long. */
    page?: PageLimits;
    /** The budget for history that the newest window was built for. */
    budget?: number;
    /** By the service, by its window before and what came since, or by the host's messages alone. */
    served?: {
        by: "engined" | "kept" | "host";
        why?: string;
        at: number;
        messages: number;
        tokens?: number;
        epoch?: number;
    };
    /** The last turn that ended; `waiting` for the host to try again, or `left` to the next sync. */
    committed?: {
        status: "committed" | "duplicate" | "refused" | "waiting" | "left";
        why?: string;
        at: number;
    };
    /** When the last maintenance ended, in ms since the epoch. */
    maintained?: number;
}
export declare class Service {
    #private;
    readonly config: Config;
    readonly client: Client;
    readonly gatewayId: string;
    readonly pending: Pending;
    readonly log: Logger;
    readonly troubles: Troubles;
    readonly windows: Windows;
    constructor(config: Config, dir: string, log: Logger);
    /** The service's key of a host session. */
    key(sessionKey: string | undefined, sessionId: string): string;
    note(key: string): SessionNote;
    forget(key: string): void;
    /** Tells the service of a reset or delete, now or before the session's next window. */
    step(key: string, step: Step): Promise<void>;
    /** Pays what a session owes; answers whether nothing is owed any more. */
    settle(key: string, deadline: number, probe?: boolean): Promise<boolean>;
}
/** The service of a configuration, one for all module instances of the process. */
export declare function sharedService(config: Config, dir: string, log: Logger): Service;
