export interface BreakerState {
    open: boolean;
    /** Why it opened last. */
    reason?: string;
    /** When it opened, in ms since the epoch. */
    since?: number;
    failures: number;
}
export declare class Breaker {
    #private;
    constructor(now?: () => number, random?: () => number);
    /** Whether a call may go out. */
    allows(probe: boolean): boolean;
    succeeded(): void;
    failed(reason: string): void;
    get state(): BreakerState;
}
