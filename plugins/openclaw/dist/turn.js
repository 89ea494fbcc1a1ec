// What one engine instance knows. The host makes an instance per logical turn, so
// this is a turn's memory: its time, its budgets, where its messages begin.
import { Budget } from "./budget.js";
import { TurnClock } from "./clock.js";
import { seams as hostSeams } from "./seams.js";
export class Turn {
    service;
    seams;
    clock;
    budget;
    /** When it began, in ms since the epoch. */
    begun = Date.now();
    /** Whether the host had a transcript to sync. */
    bootstrapped = false;
    /** Where the running turn begins in the messages of a host without a fence. */
    start;
    /** The plugin's own tools that the model has. */
    tools;
    #waitCounted = false;
    /** `wholeWindow`: this host's budgets are the model's whole window. */
    constructor(service, wholeWindow, seams = hostSeams) {
        const { deadlines, reserveTokens } = service.config;
        this.service = service;
        this.seams = seams;
        this.clock = new TurnClock(deadlines.turn, deadlines.commit);
        this.budget = new Budget(wholeWindow, reserveTokens);
    }
    /** The service's key of the session that a call is about. */
    key(params) {
        const key = this.service.key(params.sessionKey, params.sessionId ?? "");
        this.#countWait(key);
        return key;
    }
    /** The host has a turn wait for the maintenance of the one before: that time is this plugin's doing too. */
    #countWait(key) {
        if (this.#waitCounted)
            return;
        this.#waitCounted = true;
        const { maintained } = this.service.note(key);
        if (maintained && maintained > this.begun)
            this.clock.charge(maintained - this.begun);
    }
}
