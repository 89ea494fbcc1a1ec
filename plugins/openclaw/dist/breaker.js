// A circuit breaker: while the service is away, calls fail at once instead of
// each waiting for its deadline. It never blocks a probe (the first call of a
// turn, a commit): those find out when the service is back.
const firstPause = 1_000;
const longestPause = 30_000;
export class Breaker {
    #until = 0;
    #failures = 0;
    #reason;
    #since;
    #now;
    #random;
    constructor(now = Date.now, random = Math.random) {
        this.#now = now;
        this.#random = random;
    }
    /** Whether a call may go out. */
    allows(probe) {
        return probe || this.#now() >= this.#until;
    }
    succeeded() {
        this.#until = 0;
        this.#failures = 0;
        this.#since = undefined;
    }
    failed(reason) {
        const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#failures, 10));
        this.#failures++;
        this.#reason = reason;
        this.#since ??= this.#now();
        this.#until = this.#now() + pause * (0.5 + this.#random() / 2);
    }
    get state() {
        return { open: this.#failures > 0, reason: this.#reason, since: this.#since, failures: this.#failures };
    }
}
