// The time one turn may lose to the service. The host has no deadline on most
// calls, so an engine instance, which lives for one logical turn, keeps count.

/** What is left of a turn's time; waits that overlap count once. */
export class TurnClock {
  #spent = 0;
  #running = 0;
  #start = 0;
  #called = false;
  readonly #total: number;
  readonly #kept: number;
  readonly #now: () => number;

  /** `kept` of `total` ms are for the commit alone: a turn must be stored. */
  constructor(total: number, kept: number, now: () => number = () => performance.now()) {
    this.#total = total;
    this.#kept = Math.min(kept, total);
    this.#now = now;
  }

  /** The deadline for a call that would like to wait `wish` ms; ≤ 0: none is left. */
  deadline(wish: number, forCommit = false): number {
    const left = this.#total - this.#spent - (forCommit ? 0 : this.#kept);
    return Math.min(wish, Math.floor(left));
  }

  /** Counts time that was lost elsewhere, in ms. */
  charge(ms: number): void {
    this.#spent += ms;
  }

  /** True once: the first call of a turn is a probe. */
  first(): boolean {
    const first = !this.#called;
    this.#called = true;
    return first;
  }

  async measure<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running++ === 0) this.#start = this.#now();
    try {
      return await work();
    } finally {
      if (--this.#running === 0) this.#spent += this.#now() - this.#start;
    }
  }
}
