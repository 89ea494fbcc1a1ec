import { Client } from "./client.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./host.ts";
import { Pending, type Step } from "./pending.ts";
/** What the status command tells of a session in this process. */
export interface SessionNote {
    sessionId?: string;
    /** Whether the last sync reached the end of the host's transcript. */
    synced?: boolean;
    syncFailure?: string;
    /** The budget for history that the newest window was built for. */
    budget?: number;
    served?: {
        by: "engined" | "host";
        why?: string;
        at: number;
        messages: number;
        tokens?: number;
        epoch?: number;
    };
    committed?: {
        status: string;
        at: number;
    };
}
export declare class Service {
    #private;
    readonly config: Config;
    readonly client: Client;
    readonly gatewayId: string;
    readonly pending: Pending;
    readonly log: Logger;
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
