import type { HostMessage } from "./host.ts";
/**
 * A budget rounded down, so that prompts of slightly different length ask for
 * the same one: a window's cut point depends on the budget, and a provider's
 * cache on the cut point.
 */
export declare function round(budget: number): number;
/** The budgets of one turn. */
export declare class Budget {
    #private;
    /** `wholeWindow`: the host's budget has nothing taken off for its own prompt. */
    constructor(wholeWindow: boolean, reserve: number);
    /** A new attempt of the turn begins. */
    restart(): void;
    /** The budget for history; `live` is what the plugin itself puts behind it. */
    next(given: number | undefined, live?: number): number | undefined;
}
/** A rough count of tokens, for messages that the service has not seen. */
export declare function estimate(messages: readonly HostMessage[]): number;
