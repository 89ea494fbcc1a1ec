// The token budget that the service is asked to fill. The host means different
// things by it: before a turn 2026.9.6 takes off what its own prompt and the
// reply need; in the tool loop, and always in 2026.6.11, it gives the window.
const grain = 1_024;
/**
 * A budget rounded down, so that prompts of slightly different length ask for
 * the same one: a window's cut point depends on the budget, and a provider's
 * cache on the cut point.
 */
export function round(budget) {
    return budget >= 8 * grain ? Math.floor(budget / grain) * grain : budget;
}
/** The budgets of one turn. */
export class Budget {
    #reserve;
    #wholeWindow;
    #first;
    #loop;
    /** `wholeWindow`: the host's budget has nothing taken off for its own prompt. */
    constructor(wholeWindow, reserve) {
        this.#wholeWindow = wholeWindow;
        this.#reserve = reserve;
    }
    /** A new attempt of the turn begins. */
    restart() {
        this.#first = this.#loop = undefined;
    }
    /** The budget for history; `live` is what the plugin itself puts behind it. */
    next(given, live = 0) {
        if (given === undefined || !Number.isFinite(given) || given <= 0)
            return undefined;
        let budget = given;
        if (this.#wholeWindow) {
            budget -= Math.min(this.#reserve, given / 2);
        }
        else if (this.#first === undefined) {
            this.#first = given;
        }
        else {
            // What the turn has grown by since its first request of the loop.
            this.#loop ??= given;
            budget = Math.min(given, this.#first - Math.max(0, this.#loop - given));
        }
        return Math.max(1, round(Math.floor(budget - live)));
    }
}
/** A rough count of tokens, for messages that the service has not seen. */
export function estimate(messages) {
    let chars = 0;
    for (const message of messages)
        chars += textLength(message.content) + 16;
    return Math.ceil(chars / 3);
}
function textLength(content) {
    if (typeof content === "string")
        return content.length;
    if (!Array.isArray(content))
        return 0;
    let length = 0;
    for (const block of content) {
        if (block?.type === "image")
            length += 6_000;
        else
            length += JSON.stringify(block ?? "")?.length ?? 0;
    }
    return length;
}
