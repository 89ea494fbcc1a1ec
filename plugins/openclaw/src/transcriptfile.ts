// The transcript file of 2026.6.11: one JSON entry a line, appended to. Only what
// is behind the cursor is read, however long the file has become.

import { open, type FileHandle } from "node:fs/promises";
import type { Page, Reader } from "./transcript.ts";

/** How many entries were read, where the newest of them begins and ends, and its id. */
const form = /^jsonl:(\d+):(?:(\d+)-(\d+):)?(.*)$/;

const chunkBytes = 4 * 1024 * 1024;

interface Line {
  start: number;
  end: number;
  entry: { id?: string };
}

export function fileReader(path: string): Reader {
  return {
    async read(cursor, limits): Promise<Page | "restart" | "later"> {
      let file: FileHandle;
      try {
        file = await open(path, "r");
      } catch {
        return "later";
      }
      try {
        const { size } = await file.stat();
        let known = 0;
        let from = 0;
        if (cursor !== null) {
          const at = form.exec(cursor);
          if (!at) return "restart";
          const [start, end, id] = [Number(at[2] ?? -1), Number(at[3] ?? -1), at[4]!];
          known = Number(at[1]);
          from = start >= 0 && end <= size && (await idAt(file, start, end)) === id ? end : await endOf(file, size, known, id);
          if (from < 0) return "restart";
        }
        const { lines, more } = await linesFrom(file, from, size, limits.events, limits.bytes);
        const last = lines.at(-1);
        return {
          entries: lines.map((l) => l.entry),
          cursor: last ? `jsonl:${known + lines.length}:${last.start}-${last.end}:${last.entry.id ?? ""}` : (cursor ?? "jsonl:0:0-0:"),
          more,
        };
      } finally {
        await file.close();
      }
    },
  };
}

async function bytesOf(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const buffer = Buffer.alloc(end - start);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
  return buffer.subarray(0, bytesRead);
}

function parse(bytes: Buffer): { id?: string } | undefined {
  try {
    const entry: unknown = JSON.parse(bytes.toString("utf8"));
    return entry !== null && typeof entry === "object" ? (entry as { id?: string }) : undefined;
  } catch {
    // A line that is being written, or was cut off by a crash.
    return undefined;
  }
}

/** How often a record is looked for within one line. */
const mostTries = 10_000;

/**
 * Where in a whole line its record begins: behind the torn end of another one, or
 * the NULs of a crash, when that is where the host went on writing.
 */
function recordIn(line: Buffer): number {
  if (parse(line)) return 0;
  let at = line.length;
  for (let tries = 0; at > 0 && tries < mostTries; tries++) {
    at = line.lastIndexOf('{"type":', at - 1);
    if (at < 0) break;
    const entry = parse(line.subarray(at));
    // A block of a torn message has a type too, and maybe an id.
    if (entry && ("timestamp" in entry || "message" in entry || "version" in entry)) return at;
  }
  return 0;
}

async function idAt(file: FileHandle, start: number, end: number): Promise<string | undefined> {
  if (end === start) return "";
  const entry = parse(await bytesOf(file, start, end));
  return entry && (entry.id ?? "");
}

/**
 * Where the n-th entry ends, if it still has this id: the host mends entries in
 * their place, and what is behind them moves. -1: it is another file.
 */
async function endOf(file: FileHandle, size: number, n: number, id: string): Promise<number> {
  const { lines } = await linesFrom(file, 0, size, n, Infinity);
  const last = lines.at(-1);
  return n === 0 ? 0 : lines.length === n && (last?.entry.id ?? "") === id ? last!.end : -1;
}

/** Up to `most` entries from a position on, at least one and otherwise no more than `bytes`. */
async function linesFrom(file: FileHandle, from: number, size: number, most: number, bytes: number): Promise<{ lines: Line[]; end: number; more: boolean }> {
  const lines: Line[] = [];
  let end = from;
  for (let want = Math.min(chunkBytes, bytes); end < size; ) {
    const buffer = await bytesOf(file, end, Math.min(size, end + want));
    let at = 0;
    while (at < buffer.length) {
      const newline = buffer.indexOf(10, at);
      const atEnd = newline < 0 && end + buffer.length >= size;
      if (newline < 0 && !atEnd) break;
      const stop = newline < 0 ? buffer.length : newline;
      const text = buffer.subarray(at, stop);
      const start = newline < 0 ? 0 : recordIn(text);
      const entry = parse(text.subarray(start));
      // The last line may be in the middle of being written: it is left for the next time.
      if (!entry && newline < 0) return { lines, end: end + at, more: false };
      if (entry && lines.length > 0 && (lines.length >= most || end + stop - from > bytes)) return { lines, end: end + at, more: true };
      if (entry) lines.push({ start: end + at + start, end: end + stop, entry });
      at = newline < 0 ? stop : stop + 1;
    }
    if (at === 0) want *= 2;
    end += at;
  }
  return { lines, end, more: false };
}
