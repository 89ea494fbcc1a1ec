// A circuit breaker: while the service is away, calls fail at once instead of
// each waiting for its deadline. It never blocks a probe (the first call of a
// turn, a commit): those find out when the service is back.

export interface BreakerState {
  open: boolean;
  /** Why it opened last. */
  reason?: string;
  /** When it opened, in ms since the epoch. */
  since?: number;
  failures: number;
}

const firstPause = 1_000;
const longestPause = 30_000;

export class Breaker {
  #until = 0;
  #failures = 0;
  #reason: string | undefined;
  #since: number | undefined;
  readonly #now: () => number;
  readonly #random: () => number;

  constructor(now: () => number = Date.now, random: () => number = Math.random) {
    this.#now = now;
    this.#random = random;
  }

  /** Whether a call may go out. */
  allows(probe: boolean): boolean {
    return probe || this.#now() >= this.#until;
  }

  succeeded(): void {
    this.#until = 0;
    this.#failures = 0;
    this.#since = undefined;
  }

  failed(reason: string): void {
    const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    this.#reason = reason;
    this.#since ??= this.#now();
    this.#until = this.#now() + pause * (0.5 + this.#random() / 2);
  }

  get state(): BreakerState {
    return { open: this.#failures > 0, reason: this.#reason, since: this.#since, failures: this.#failures };
  }
}
