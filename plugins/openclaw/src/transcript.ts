// Reading the host's transcript: 2026.9.6 pages its database by cursor, 2026.6.11
// has a JSONL file. Both answer raw entries, with resets, leaf moves and
// compactions among them.

import { isAbsolute } from "node:path";
import type { RawDelta, SessionParams } from "./host.ts";
import { fileReader } from "./transcriptfile.ts";

export interface Page {
  entries: unknown[];
  /** Where the next page begins. */
  cursor: string;
  more: boolean;
}

export interface Reader {
  /**
   * The page behind a cursor; null asks for the beginning. Answers "restart"
   * where the cursor no longer fits, "later" where nothing can be read now.
   */
  read(cursor: string | null, limits: PageLimits): Promise<Page | "restart" | "later">;
}

/** A page holds no more than this, but always one entry where there is one. */
export interface PageLimits {
  events: number;
  bytes: number;
}

export const pageLimits: PageLimits = { events: 500, bytes: 4 * 1024 * 1024 };

/** What this plugin uses of `openclaw/plugin-sdk/session-transcript-runtime`. */
export interface TranscriptSDK {
  readSessionTranscriptRawDelta?(params: Record<string, unknown>): Promise<RawDelta>;
}

/** Loads the host's SDK; undefined where this host has none of it. */
export async function loadSDK(): Promise<TranscriptSDK | undefined> {
  try {
    // Resolved by the host's loader; a variable keeps the compiler from looking.
    const name = "openclaw/plugin-sdk/session-transcript-runtime";
    return (await import(name)) as TranscriptSDK;
  } catch {
    return undefined;
  }
}

/** A reader of the transcript that a call is about; undefined where there is none. */
export async function openTranscript(
  params: SessionParams,
  sdk: () => Promise<TranscriptSDK | undefined> = loadSDK,
): Promise<Reader | undefined> {
  if (params.sessionFile && isAbsolute(params.sessionFile) && params.sessionFile.endsWith(".jsonl")) {
    return fileReader(params.sessionFile);
  }
  const target = params.sessionTarget;
  if (!target?.sessionId || !target.sessionKey) return undefined;
  const read = (await sdk())?.readSessionTranscriptRawDelta;
  if (!read) return undefined;
  const base = {
    agentId: target.agentId,
    sessionId: target.sessionId,
    sessionKey: target.sessionKey,
    storePath: target.storePath,
    ...(target.threadId ? { threadId: target.threadId } : {}),
  };
  return {
    async read(cursor, limits) {
      const from = cursor ? { ...base, cursor } : base;
      let delta = await read({ ...from, maxEvents: limits.events, maxBytes: limits.bytes });
      // One entry is longer than a page: the host says how long.
      if (delta.kind === "page" && delta.events.length === 0 && delta.hasMore && delta.requiredBytes) {
        delta = await read({ ...from, maxEvents: 1, maxBytes: delta.requiredBytes });
      }
      if (delta.kind === "reset") return "restart";
      if (delta.kind !== "page" || (delta.hasMore && delta.events.length === 0)) return "later";
      return { entries: delta.events.map((e) => e.event), cursor: delta.cursor, more: delta.hasMore };
    },
  };
}

export interface MessageEntry {
  id: string;
  message: Record<string, unknown>;
}

/**
 * The message entries of the turn that ends with this message: from the user's
 * message before it on; undefined where it is not there. By its end alone: what
 * the host keeps of an internal turn's prompt is another message than it was.
 */
export async function entriesOfTurn(reader: Reader, last: Record<string, unknown>): Promise<MessageEntry[] | undefined> {
  const range: MessageEntry[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await reader.read(cursor, pageLimits);
    if (typeof page === "string") return undefined;
    for (const raw of page.entries as (Partial<MessageEntry> & { type?: string })[]) {
      if (raw?.type !== "message" || !raw.id || !raw.message) continue;
      const { role, timestamp } = raw.message;
      if (role === "user") range.length = 0;
      range.push(raw as MessageEntry);
      if (role === last.role && typeof timestamp === "number" && timestamp === last.timestamp) {
        return range[0]!.message.role === "user" ? range : undefined;
      }
    }
    if (!page.more) return undefined;
    cursor = page.cursor;
  }
}
