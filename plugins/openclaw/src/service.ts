// What outlives an engine instance: the client, who we are, what is known of each
// session. The host makes an instance per turn and loads this module twice per
// process, so all of it hangs on one global symbol.

import { Client, asProblem, message } from "./client.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./host.ts";
import { keptGatewayId } from "./identity.ts";
import { Pending, type Step } from "./pending.ts";
import { version } from "./version.ts";

/** What the status command tells of a session in this process. */
export interface SessionNote {
  sessionId?: string;
  /** Whether the last sync reached the end of the host's transcript. */
  synced?: boolean;
  syncFailure?: string;
  /** The budget for history that the newest window was built for. */
  budget?: number;
  served?: { by: "engined" | "host"; why?: string; at: number; messages: number; tokens?: number; epoch?: number };
  committed?: { status: string; at: number };
}

const notesKept = 2_000;

export class Service {
  readonly config: Config;
  readonly client: Client;
  readonly gatewayId: string;
  readonly pending: Pending;
  readonly log: Logger;
  readonly #notes = new Map<string, SessionNote>();

  constructor(config: Config, dir: string, log: Logger) {
    this.config = config;
    this.log = log;
    this.client = new Client({ baseUrl: config.baseUrl, apiKey: config.apiKey });
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
      if (step.kind === "erase") {
        await this.client.call("DELETE /v1/sessions/{key}", key, { deadline, probe });
      } else {
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
    } catch (error) {
      const problem = asProblem(error);
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
