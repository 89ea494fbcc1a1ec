// The context engine that the host sees: a thin one. It decides nothing about
// context; it passes calls on, in time, and gives the host's own messages back
// where the service does not answer. The host makes an instance per turn.

import { afterTurn, commitTurn } from "./commit.ts";
import { compact } from "./compaction.ts";
import type * as host from "./host.ts";
import { ingestBatch, type IngestParams } from "./ingest.ts";
import { seams, type HostSeams } from "./seams.ts";
import type { Service } from "./service.ts";
import { ended, prepare } from "./subagents.ts";
import { Turn } from "./turn.ts";
import { bootstrap, maintain } from "./upkeep.ts";
import { version } from "./version.ts";
import { assemble } from "./window.ts";

export const info = {
  id: "engined",
  name: "engined",
  version,
  ownsCompaction: true,
  turnMaintenanceMode: "background",
  acceptedHostParams: ["sessionKey", "prompt", "sessionTarget", "runtimeContext", "abortSignal"],
  transcriptSemantics: {
    currentTurnFence: "before-current-turn-entry-v1",
    turnAdvancementIdempotency: "atomic-idempotent-v1",
  },
} as const;

export class Engine {
  readonly info = info;
  readonly #turn: Turn;

  /** `wholeWindow`: this host's budgets are the model's whole window. */
  constructor(service: Service, wholeWindow: boolean, from: HostSeams = seams) {
    this.#turn = new Turn(service, wholeWindow, from);
  }

  bootstrap(params: host.SessionParams): Promise<host.BootstrapResult> {
    return bootstrap(this.#turn, params);
  }

  assemble(params: host.AssembleParams): Promise<host.AssembleResult> {
    return assemble(this.#turn, params);
  }

  commitTurn(params: host.CommitTurnParams): Promise<{ status: "committed" | "duplicate" }> {
    return commitTurn(this.#turn, params);
  }

  afterTurn(params: host.AfterTurnParams): Promise<void> {
    return afterTurn(this.#turn, params);
  }

  async ingest(params: host.SessionParams & { message: host.HostMessage; isHeartbeat?: boolean }): Promise<{ ingested: boolean }> {
    return { ingested: (await ingestBatch(this.#turn, { ...params, messages: [params.message] })) > 0 };
  }

  async ingestBatch(params: IngestParams): Promise<{ ingestedCount: number }> {
    return { ingestedCount: await ingestBatch(this.#turn, params) };
  }

  compact(params: host.CompactParams): Promise<host.CompactResult> {
    return compact(this.#turn, params);
  }

  maintain(params: host.SessionParams): Promise<host.MaintainResult> {
    return maintain(this.#turn, params);
  }

  prepareSubagentSpawn(params: host.SpawnParams): Promise<{ rollback(): Promise<void> }> {
    return prepare(this.#turn, params);
  }

  onSubagentEnded(params: { childSessionKey: string; reason: host.SubagentEndReason }): Promise<void> {
    return ended(this.#turn, params.childSessionKey, params.reason);
  }

  /** Nothing to let go of: all that an instance uses outlives it. */
  async dispose(): Promise<void> {}
}
