// Bringing the host's transcript to the service. The service keeps the cursor,
// per gateway and host session, so nothing here has to be remembered; what it
// knows already it skips.

import { AwayError, asProblem, message } from "./errors.ts";
import { entry, place } from "./wire.ts";
import type { SessionParams } from "./host.ts";
import type { Service } from "./service.ts";
import { openTranscript, pageLimits, type Page, type PageLimits, type Reader } from "./transcript.ts";

export interface SyncResult {
  /** Whether the end of the host's transcript was reached. */
  complete: boolean;
  stored: number;
  /** Why the end was not reached. */
  reason?: string;
}

export interface SyncOptions {
  /** Milliseconds for all of it; what is left goes with the next sync. */
  deadline: number;
  signal?: AbortSignal;
  probe?: boolean;
  reader?: Reader;
  now?: () => number;
}

/** Sends what the service does not have. Rejects only after an abort. */
export async function sync(
  service: Service,
  key: string,
  params: SessionParams,
  options: SyncOptions,
): Promise<SyncResult> {
  const note = service.note(key);
  const result = await new Sync(service, key, params, options).run();
  note.synced = result.complete;
  note.syncFailure = result.reason;
  return result;
}

const rest = "the transcript is long: the rest follows after this turn and with the next ones";

class Sync {
  readonly #service: Service;
  readonly #key: string;
  readonly #params: SessionParams;
  readonly #options: SyncOptions;
  readonly #sessionId: string;
  readonly #end: number;
  #stored = 0;
  #sentPages = 0;
  readonly #now: () => number;
  #limits: PageLimits;

  constructor(service: Service, key: string, params: SessionParams, options: SyncOptions) {
    this.#service = service;
    this.#key = key;
    this.#params = params;
    this.#options = options;
    this.#sessionId = params.sessionTarget?.sessionId ?? params.sessionId;
    this.#now = options.now ?? (() => performance.now());
    this.#end = this.#now() + options.deadline;
    this.#limits = service.note(key).page ?? pageLimits;
  }

  async run(): Promise<SyncResult> {
    try {
      return await this.#pages();
    } catch (error) {
      this.#options.signal?.throwIfAborted();
      return this.#stopped(error instanceof AwayError && error.late && this.#sentPages > 0 ? rest : message(error));
    }
  }

  async #pages(): Promise<SyncResult> {
    const reader = this.#options.reader ?? (await openTranscript(this.#params));
    if (!reader) return this.#stopped("this host shows no transcript");
    let cursor = await this.#cursor();
    let restarts = 0;
    for (;;) {
      const start = this.#now();
      const page = await reader.read(cursor, this.#limits);
      if (page === "later") return this.#stopped("the host cannot show its transcript now");
      if (page === "restart") {
        if (restarts++ > 0) return this.#stopped("the host's transcript changes while it is read");
        cursor = null;
        continue;
      }
      if (!(await this.#sent(page))) {
        this.#limits = { ...this.#limits, events: Math.ceil(page.entries.length / 2) };
        continue;
      }
      if (!page.more) return { complete: true, stored: this.#stored };
      cursor = page.cursor;
      this.#resize(2);
      // A page that would not come to its end is not begun: it would be sent again.
      if (this.#left() < 2 * (this.#now() - start)) return this.#stopped(rest);
    }
  }

  /** Pages grow while they get through, and shrink for the next sync where one did not in its time. */
  #resize(factor: number): void {
    const size = (now: number, least: number, most: number): number => Math.min(most, Math.max(least, Math.ceil(now * factor)));
    const { events, bytes } = pageLimits;
    this.#limits = { events: size(this.#limits.events, 1, events), bytes: size(this.#limits.bytes, 65_536, bytes) };
    this.#service.note(this.#key).page = this.#limits;
  }

  #left(): number {
    return Math.floor(this.#end - this.#now());
  }

  #stopped(reason: string): SyncResult {
    return { complete: false, stored: this.#stored, reason };
  }

  async #cursor(): Promise<string | null> {
    const { cursor } = await this.#service.client.call("GET /v1/sessions/{key}/transcript", this.#key, {
      query: { sessionId: this.#sessionId, gatewayId: this.#service.gatewayId },
      deadline: this.#left(),
      signal: this.#options.signal,
      probe: this.#options.probe,
    });
    if (cursor !== null && typeof cursor !== "string") throw new Error("the node's answer about a transcript is not known");
    return cursor || null;
  }

  /**
   * Sends a page; answers false where it is to be sent in smaller ones, since
   * something in it is refused. An entry that is refused alone would hold up all
   * that comes behind it for ever: it keeps its place and loses its content.
   */
  async #sent(page: Page): Promise<boolean> {
    const entries = page.entries.map(entry).filter((e) => e !== undefined);
    if (entries.length === 0) return true;
    try {
      await this.#send(page.cursor, entries);
    } catch (error) {
      const problem = asProblem(error);
      if (!problem) this.#resize(0.5);
      if (problem?.status !== 413 && problem?.status !== 422) throw error;
      if (page.entries.length > 1) return false;
      await this.#send(page.cursor, [place(page.entries[0])]);
      const { id } = page.entries[0] as { id?: string };
      this.#service.log.error(`engined: entry ${id} of ${this.#key} is refused and was sent without its content: ${message(error)}`);
    }
    return true;
  }

  async #send(cursor: string, entries: unknown[]): Promise<void> {
    const answer = await this.#service.client.call("POST /v1/sessions/{key}/transcript", this.#key, {
      body: {
        sessionId: this.#sessionId,
        gatewayId: this.#service.gatewayId,
        cursor,
        entries,
        lifecycleRevision: this.#params.sessionTarget?.expectedLifecycleRevision,
      },
      deadline: this.#left(),
      rest: this.#sentPages > 0,
      signal: this.#options.signal,
      probe: this.#options.probe,
    });
    if (!Number.isInteger(answer.stored)) throw new Error("the node's answer to a transcript is not known");
    this.#stored += answer.stored;
    this.#sentPages++;
  }
}
