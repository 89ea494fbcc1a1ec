// The token budget that the service is asked to fill. The host means different
// things by it: before a turn 2026.9.6 takes off what its own prompt and the
// reply need; in the tool loop, and always in 2026.6.11, it gives the window.

import type { HostMessage } from "./host.ts";

const grain = 1_024;

/**
 * A budget rounded down, so that prompts of slightly different length ask for
 * the same one: a window's cut point depends on the budget, and a provider's
 * cache on the cut point.
 */
export function round(budget: number): number {
  return budget >= 8 * grain ? Math.floor(budget / grain) * grain : budget;
}

/** The budgets of one turn. */
export class Budget {
  readonly #reserve: number;
  readonly #wholeWindow: boolean;
  #first: number | undefined;
  #loop: number | undefined;

  /** `wholeWindow`: the host's budget has nothing taken off for its own prompt. */
  constructor(wholeWindow: boolean, reserve: number) {
    this.#wholeWindow = wholeWindow;
    this.#reserve = reserve;
  }

  /** A new attempt of the turn begins. */
  restart(): void {
    this.#first = this.#loop = undefined;
  }

  /** The budget for history; `live` is what the plugin itself puts behind it. */
  next(given: number | undefined, live = 0): number | undefined {
    if (given === undefined || !Number.isFinite(given) || given <= 0) return undefined;
    let budget = given;
    if (this.#wholeWindow) {
      budget -= Math.min(this.#reserve, given / 2);
    } else if (this.#first === undefined) {
      this.#first = given;
    } else {
      // What the turn has grown by since its first request of the loop.
      this.#loop ??= given;
      budget = Math.min(given, this.#first - Math.max(0, this.#loop - given));
    }
    return Math.max(1, round(Math.floor(budget - live)));
  }
}

/** A rough count of tokens, for messages that the service has not seen. */
export function estimate(messages: readonly HostMessage[]): number {
  let chars = 0;
  for (const message of messages) chars += textLength(message.content) + 16;
  return Math.ceil(chars / 3);
}

function textLength(content: unknown): number {
  if (typeof content === "string") return content.length;
  if (!Array.isArray(content)) return 0;
  let length = 0;
  for (const block of content as Record<string, unknown>[]) {
    if (block?.type === "image") length += 6_000;
    else length += JSON.stringify(block ?? "")?.length ?? 0;
  }
  return length;
}
