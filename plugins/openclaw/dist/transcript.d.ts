import type { RawDelta, SessionParams } from "./host.ts";
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
export declare const pageLimits: PageLimits;
/** What this plugin uses of `openclaw/plugin-sdk/session-transcript-runtime`. */
export interface TranscriptSDK {
    readSessionTranscriptRawDelta?(params: Record<string, unknown>): Promise<RawDelta>;
}
/** Loads the host's SDK; undefined where this host has none of it. */
export declare function loadSDK(): Promise<TranscriptSDK | undefined>;
/** A reader of the transcript that a call is about; undefined where there is none. */
export declare function openTranscript(params: SessionParams, sdk?: () => Promise<TranscriptSDK | undefined>): Promise<Reader | undefined>;
export interface MessageEntry {
    id: string;
    message: Record<string, unknown>;
}
/**
 * The message entries of the turn that ends with this message: from the user's
 * message before it on; undefined where it is not there. By its end alone: what
 * the host keeps of an internal turn's prompt is another message than it was.
 */
export declare function entriesOfTurn(reader: Reader, last: Record<string, unknown>): Promise<MessageEntry[] | undefined>;
