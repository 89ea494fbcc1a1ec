import { Budget } from "./budget.ts";
import { TurnClock } from "./clock.ts";
import { type HostSeams } from "./seams.ts";
import type { Service } from "./service.ts";
export declare class Turn {
    #private;
    readonly service: Service;
    readonly seams: HostSeams;
    readonly clock: TurnClock;
    readonly budget: Budget;
    /** When it began, in ms since the epoch. */
    readonly begun: number;
    /** Whether the host had a transcript to sync. */
    bootstrapped: boolean;
    /** Where the running turn begins in the messages of a host without a fence. */
    start: number | undefined;
    /** The plugin's own tools that the model has. */
    tools: string[] | undefined;
    /** `wholeWindow`: this host's budgets are the model's whole window. */
    constructor(service: Service, wholeWindow: boolean, seams?: HostSeams);
    /** The service's key of the session that a call is about. */
    key(params: {
        sessionKey?: string;
        sessionId?: string;
    }): string;
}
