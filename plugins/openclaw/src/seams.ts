// What the engine needs of the host beside its calls; tests put their own in.

import type * as host from "./host.ts";
import { openTranscript, type Reader } from "./transcript.ts";

export interface HostSeams {
  open(params: host.SessionParams): Promise<Reader | undefined>;
  /** The host's own compaction, for when the service is away. */
  compact(params: host.CompactParams): Promise<host.CompactResult>;
  /** A clock that never goes back, in ms. */
  now(): number;
}

export const seams: HostSeams = {
  open: openTranscript,
  async compact(params) {
    const name = "openclaw/plugin-sdk/core";
    const sdk = (await import(name)) as { delegateCompactionToRuntime(params: host.CompactParams): Promise<host.CompactResult> };
    return sdk.delegateCompactionToRuntime(params);
  },
  now: () => performance.now(),
};
