export interface Step {
    kind: "reset" | "erase";
    sessionId?: string;
    nextSessionId?: string;
    reason?: string;
}
/** What is owed, by session key; kept in one small file. */
export declare class Pending {
    #private;
    /** Without a directory nothing outlives the process. */
    constructor(dir: string | undefined);
    get(key: string): Step | undefined;
    keys(): string[];
    set(key: string, step: Step): void;
    done(key: string, step: Step): void;
}
