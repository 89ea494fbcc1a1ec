export interface Deadlines {
    /** Milliseconds, each for one call with all its retries. */
    assemble: number;
    sync: number;
    commit: number;
    compact: number;
    /** For what is left of a long sync after a turn; the next turn may have to wait for it. */
    maintain: number;
    other: number;
    /** All that may be added to one turn, compactions aside. */
    turn: number;
}
export interface Config {
    baseUrl: string;
    apiKey?: string;
    gatewayId?: string;
    keyPrefix: string;
    /** Tokens kept free of history where the host's budget is the whole window. */
    reserveTokens: number;
    toolScope: "session" | "tenant";
    deadlines: Deadlines;
}
export declare const defaults: Config;
/** Reads what the user wrote; `complain` is told what was not taken. */
export declare function readConfig(raw: Record<string, unknown> | undefined, complain: (line: string) => void): Config;
