// Reading the host's transcript: 2026.9.6 pages its database by cursor, 2026.6.11
// has a JSONL file that is read whole. Both answer raw entries, with resets,
// leaf moves and compactions among them.
var __rewriteRelativeImportExtension = (this && this.__rewriteRelativeImportExtension) || function (path, preserveJsx) {
    if (typeof path === "string" && /^\.\.?\//.test(path)) {
        return path.replace(/\.(tsx)$|((?:\.d)?)((?:\.[^./]+?)?)\.([cm]?)ts$/i, function (m, tsx, d, ext, cm) {
            return tsx ? preserveJsx ? ".jsx" : ".js" : d && (!ext || !cm) ? m : (d + ext + "." + cm.toLowerCase() + "js");
        });
    }
    return path;
};
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
const pageEvents = 500;
const pageBytes = 4 * 1024 * 1024;
/** Loads the host's SDK; undefined where this host has none of it. */
export async function loadSDK() {
    try {
        // Resolved by the host's loader; a variable keeps the compiler from looking.
        const name = "openclaw/plugin-sdk/session-transcript-runtime";
        return (await import(__rewriteRelativeImportExtension(name)));
    }
    catch {
        return undefined;
    }
}
/** A reader of the transcript that a call is about; undefined where there is none. */
export async function openTranscript(params, sdk = loadSDK) {
    if (params.sessionFile && isAbsolute(params.sessionFile) && params.sessionFile.endsWith(".jsonl")) {
        return fileReader(params.sessionFile);
    }
    const target = params.sessionTarget;
    if (!target?.sessionId || !target.sessionKey)
        return undefined;
    const read = (await sdk())?.readSessionTranscriptRawDelta;
    if (!read)
        return undefined;
    const base = {
        agentId: target.agentId,
        sessionId: target.sessionId,
        sessionKey: target.sessionKey,
        storePath: target.storePath,
        ...(target.threadId ? { threadId: target.threadId } : {}),
    };
    return {
        async read(cursor) {
            const delta = await read({
                ...base,
                ...(cursor ? { cursor } : {}),
                maxEvents: pageEvents,
                maxBytes: pageBytes,
            });
            if (delta.kind === "reset")
                return "restart";
            if (delta.kind !== "page")
                return "later";
            return { entries: delta.events.map((e) => e.event), cursor: delta.cursor, more: delta.hasMore };
        },
    };
}
const fileCursor = /^jsonl:(\d+):(.*)$/;
/**
 * Reads a transcript file. Its cursor says how many entries were read and which
 * was the last, so that a file that was rewritten is read from the beginning.
 */
export function fileReader(path) {
    return {
        async read(cursor) {
            let text;
            try {
                text = await readFile(path, "utf8");
            }
            catch {
                return "later";
            }
            const all = [];
            for (const line of text.split("\n")) {
                if (line.trim() === "")
                    continue;
                try {
                    all.push(JSON.parse(line));
                }
                catch {
                    // A line that is being written, or was cut off by a crash.
                }
            }
            let from = 0;
            if (cursor !== null) {
                const at = fileCursor.exec(cursor);
                from = at ? Number(at[1]) : -1;
                if (from < 0 || from > all.length || (from > 0 && (all[from - 1]?.id ?? "") !== at[2]))
                    return "restart";
            }
            const entries = all.slice(from, from + pageEvents);
            const end = from + entries.length;
            return { entries, cursor: `jsonl:${end}:${all[end - 1]?.id ?? ""}`, more: end < all.length };
        },
    };
}
/** The transcript's message entries from one message to another; undefined where one is missing. */
export async function entriesOf(reader, first, last) {
    if (!first || !last)
        return undefined;
    const range = [];
    const is = (entry, message) => entry.message.role === message.role && typeof message.timestamp === "number" && entry.message.timestamp === message.timestamp;
    for (let cursor = null;;) {
        const page = await reader.read(cursor);
        if (typeof page === "string")
            return undefined;
        for (const raw of page.entries) {
            if (raw?.type !== "message" || !raw.id || !raw.message)
                continue;
            const entry = raw;
            if (is(entry, first))
                range.length = 0;
            else if (range.length === 0)
                continue;
            range.push(entry);
            if (is(entry, last))
                return range;
        }
        if (!page.more)
            return undefined;
        cursor = page.cursor;
    }
}
