/** What is left of a turn's time; waits that overlap count once. */
export declare class TurnClock {
    #private;
    /** `kept` of `total` ms are for the commit alone: a turn must be stored. */
    constructor(total: number, kept: number, now?: () => number);
    /** The deadline for a call that would like to wait `wish` ms; ≤ 0: none is left. */
    deadline(wish: number, forCommit?: boolean): number;
    /** Counts time that was lost elsewhere, in ms. */
    charge(ms: number): void;
    /** True once: the first call of a turn is a probe. */
    first(): boolean;
    measure<T>(work: () => Promise<T>): Promise<T>;
}
