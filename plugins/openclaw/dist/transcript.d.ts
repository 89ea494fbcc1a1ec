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
    read(cursor: string | null): Promise<Page | "restart" | "later">;
}
/** What this plugin uses of `openclaw/plugin-sdk/session-transcript-runtime`. */
export interface TranscriptSDK {
    readSessionTranscriptRawDelta?(params: Record<string, unknown>): Promise<RawDelta>;
}
/** Loads the host's SDK; undefined where this host has none of it. */
export declare function loadSDK(): Promise<TranscriptSDK | undefined>;
/** A reader of the transcript that a call is about; undefined where there is none. */
export declare function openTranscript(params: SessionParams, sdk?: () => Promise<TranscriptSDK | undefined>): Promise<Reader | undefined>;
/**
 * Reads a transcript file. Its cursor says how many entries were read and which
 * was the last, so that a file that was rewritten is read from the beginning.
 */
export declare function fileReader(path: string): Reader;
export interface MessageEntry {
    id: string;
    message: Record<string, unknown>;
}
/** The transcript's message entries from one message to another; undefined where one is missing. */
export declare function entriesOf(reader: Reader, first: Record<string, unknown> | undefined, last: Record<string, unknown> | undefined): Promise<MessageEntry[] | undefined>;
