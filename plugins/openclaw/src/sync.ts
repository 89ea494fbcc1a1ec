// Bringing the host's transcript to the service. The service keeps the cursor,
// per gateway and host session, so nothing here has to be remembered; what it
// knows already it skips.

import { message } from "./client.ts";
import { entry } from "./wire.ts";
import type { SessionParams } from "./host.ts";
import type { Service } from "./service.ts";
import { openTranscript, type Reader } from "./transcript.ts";

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
  /** Nothing from the page on that holds this entry is sent. */
  stopAt?: string;
}

/** Sends what the service does not have. Rejects only after an abort. */
export async function sync(
  service: Service,
  key: string,
  params: SessionParams,
  options: SyncOptions,
): Promise<SyncResult> {
  const note = service.note(key);
  const result = await run(service, key, params, options).catch((error: unknown): SyncResult => {
    options.signal?.throwIfAborted();
    return { complete: false, stored: 0, reason: message(error) };
  });
  note.synced = result.complete;
  note.syncFailure = result.reason;
  return result;
}

async function run(service: Service, key: string, params: SessionParams, options: SyncOptions): Promise<SyncResult> {
  const end = performance.now() + options.deadline;
  const left = (): number => Math.floor(end - performance.now());
  const reader = options.reader ?? (await openTranscript(params));
  if (!reader) return { complete: false, stored: 0, reason: "this host shows no transcript" };
  const { client, gatewayId } = service;
  const sessionId = params.sessionTarget?.sessionId ?? params.sessionId;
  const signal = options.signal;

  const known = await client.call("GET /v1/sessions/{key}/transcript", key, {
    query: { sessionId, gatewayId },
    deadline: left(),
    signal,
    probe: options.probe,
  });
  let cursor: string | null = known.cursor || null;
  let restarts = 0;
  let stored = 0;
  for (;;) {
    const page = await reader.read(cursor);
    if (page === "later") return { complete: false, stored, reason: "the host cannot show its transcript now" };
    if (page === "restart") {
      if (restarts++ > 0) return { complete: false, stored, reason: "the host's transcript changes while it is read" };
      cursor = null;
      continue;
    }
    if (options.stopAt !== undefined && page.entries.some((e) => (e as { id?: string } | null)?.id === options.stopAt)) {
      return { complete: true, stored };
    }
    const entries = page.entries.map(entry).filter((e) => e !== undefined);
    if (entries.length > 0) {
      const answer = await client.call("POST /v1/sessions/{key}/transcript", key, {
        body: {
          sessionId,
          gatewayId,
          cursor: page.cursor,
          entries,
          lifecycleRevision: params.sessionTarget?.expectedLifecycleRevision,
        },
        deadline: left(),
        signal,
        probe: options.probe,
      });
      stored += answer.stored ?? 0;
    }
    if (!page.more) return { complete: true, stored };
    cursor = page.cursor;
    if (left() <= 0) return { complete: false, stored, reason: "the transcript is long: the rest goes with the next sync" };
  }
}

