// What outlives an engine instance: the client, who we are, what is known of each
// session. The host makes an instance per turn and loads this module twice per
// process, so all of it hangs on one global symbol.

import { Client } from "./client.ts";
import { asProblem, message } from "./errors.ts";
import type { Route } from "./routes.ts";
import { Troubles } from "./troubles.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./host.ts";
import { keptGatewayId } from "./identity.ts";
import { Pending, type Step } from "./pending.ts";
import type { PageLimits } from "./transcript.ts";
import { version } from "./version.ts";
import { Windows } from "./windows.ts";

/** What is known of a session in this process; the service knows the rest. */
export interface SessionNote {
  sessionId?: string;
  /** The host's transcript, where it is a file. */
  sessionFile?: string;
  /** Whether the last sync reached the end of the host's transcript. */
  synced?: boolean;
  syncFailure?: string;
  /** The size of the sync's pages, where full ones took too long. */
  page?: PageLimits;
  /** The budget for history that the newest window was built for. */
  budget?: number;
  /** By the service, by its window before and what came since, or by the host's messages alone. */
  served?: { by: "engined" | "kept" | "host"; why?: string; at: number; messages: number; tokens?: number; epoch?: number };
  /** The last turn that ended; `waiting` for the host to try again, or `left` to the next sync. */
  committed?: { status: "committed" | "duplicate" | "refused" | "waiting" | "left"; why?: string; at: number };
  /** When the last maintenance ended, in ms since the epoch. */
  maintained?: number;
}

const notesKept = 2_000;

export class Service {
  readonly config: Config;
  readonly client: Client;
  readonly gatewayId: string;
  readonly pending: Pending;
  readonly log: Logger;
  readonly troubles: Troubles;
  readonly windows = new Windows();
  readonly #notes = new Map<string, SessionNote>();

  constructor(config: Config, dir: string, log: Logger) {
    this.config = config;
    this.log = log;
    this.troubles = new Troubles(log);
    this.client = new Client({ baseUrl: config.baseUrl, apiKey: config.apiKey, observe: (route, error) => this.#observe(route, error) });
    let kept: string | undefined = dir;
    let id = config.gatewayId;
    try {
      id ??= keptGatewayId(dir);
    } catch (error) {
      // Messages sent under a passing name are only linked less well.
      kept = undefined;
      id = `gw-${crypto.randomUUID()}`;
      log.warn(`engined: the gateway's id cannot be kept in ${dir} (${message(error)}); set gatewayId`);
    }
    this.gatewayId = id;
    this.pending = new Pending(kept);
  }

  /** Says what is wrong with the node, for all sessions at once; what is wrong with one request is its caller's to say. */
  #observe(route: Route, error: Error | undefined): void {
    const node = `the node at ${this.config.baseUrl}`;
    const problem = asProblem(error);
    if (error && !problem) {
      this.troubles.begin("away", `${node}: ${message(error)}; until it does, sessions are served from the host's own messages`);
      return;
    }
    this.troubles.end("away", `${node} answers again`);
    switch (problem?.status) {
      case 401:
        this.troubles.begin("key", `${node} does not take the API key (${message(problem)}): set apiKey to one that \`engined keys list\` shows as valid`);
        return;
      case 403:
        // Erasing takes another scope than the rest; its caller says so.
        if (route === "DELETE /v1/sessions/{key}") return;
        this.troubles.begin(route, `${node} refuses ${route} (${message(problem)}): the API key needs the scope gateway`);
        return;
      case undefined:
        this.troubles.end("key", `${node} takes the API key`);
        this.troubles.end(route, `${node} answers ${route} again`);
        return;
    }
    if (problem!.status >= 500 || problem!.status === 429) this.troubles.begin(route, `${node} fails at ${route}: ${message(problem)}`);
  }

  /** The service's key of a host session. */
  key(sessionKey: string | undefined, sessionId: string): string {
    return this.config.keyPrefix + (sessionKey || `session:${sessionId}`);
  }

  note(key: string): SessionNote {
    let note = this.#notes.get(key);
    if (note) {
      this.#notes.delete(key);
    } else {
      note = {};
      if (this.#notes.size >= notesKept) this.#notes.delete(this.#notes.keys().next().value!);
    }
    this.#notes.set(key, note);
    return note;
  }

  forget(key: string): void {
    this.#notes.delete(key);
    this.troubles.forget(key);
    this.windows.forget(key);
  }

  /** Tells the service of a reset or delete, now or before the session's next window. */
  async step(key: string, step: Step): Promise<void> {
    this.pending.set(key, step);
    await this.settle(key, this.config.deadlines.other, true);
  }

  /** Pays what a session owes; answers whether nothing is owed any more. */
  async settle(key: string, deadline: number, probe = false): Promise<boolean> {
    const step = this.pending.get(key);
    if (!step) return true;
    try {
      await this.#tell(key, step, deadline, probe);
    } catch (error) {
      const problem = asProblem(error);
      if (step.kind === "erase" && problem?.status === 403) {
        // What cannot be erased is at least hidden, for all gateways.
        this.log.error(`engined: ${key} is hidden, not erased: ${message(error)}. \`engined erase\` with another key erases it`);
        this.pending.set(key, { kind: "reset", sessionId: step.sessionId, reason: "deleted" });
        return this.settle(key, deadline, probe);
      }
      // An unknown or erased session has nothing to hide.
      if (!problem?.permanent) {
        this.log.warn(`engined: ${step.kind} of ${key} is still to be told: ${message(error)}`);
        return false;
      }
      if (problem.status !== 404 && problem.status !== 409) {
        this.log.error(`engined: ${step.kind} of ${key} was refused: ${message(error)}`);
      }
    }
    this.pending.done(key, step);
    return true;
  }

  async #tell(key: string, step: Step, deadline: number, probe: boolean): Promise<void> {
    if (step.kind === "erase") {
      await this.client.call("DELETE /v1/sessions/{key}", key, { deadline, probe });
      return;
    }
    await this.client.call("POST /v1/sessions/{key}/reset", key, {
      deadline,
      probe,
      body: {
        sessionId: step.sessionId,
        nextSessionId: step.nextSessionId,
        reason: step.reason,
        gatewayId: this.gatewayId,
      },
      // A reset has no key: one that was carried out must not cut again.
      once: true,
    });
  }
}

const slot = Symbol.for(`engined.openclaw/${version}`);

/** The service of a configuration, one for all module instances of the process. */
export function sharedService(config: Config, dir: string, log: Logger): Service {
  const holder = globalThis as { [slot]?: Map<string, Service> };
  const services = (holder[slot] ??= new Map<string, Service>());
  const name = JSON.stringify([config, dir]);
  let service = services.get(name);
  if (!service) {
    service = new Service(config, dir, log);
    services.set(name, service);
  }
  return service;
}
