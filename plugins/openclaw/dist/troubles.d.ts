import type { Logger } from "./host.ts";
export interface Trouble {
    why: string;
    /** Since when, in ms since the epoch. */
    since: number;
}
export declare class Troubles {
    #private;
    constructor(log: Logger, now?: () => number);
    /** Something is wrong with `topic`; `why` in words that need no more context. `key`: of this session alone. */
    begin(topic: string, why: string, key?: string): void;
    /** It is over; said only where its beginning was. */
    end(topic: string, line?: string): void;
    /** What is wrong now with the node, for all sessions. */
    list(): Trouble[];
    /** The session is gone, and its troubles with it. */
    forget(key: string): void;
}
