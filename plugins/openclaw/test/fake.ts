// A fake engined for the tests: a real HTTP server on loopback that records what
// it was asked and answers what a test told it to.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { readConfig, type Config } from "../src/config.ts";
import type { HostSeams } from "../src/seams.ts";
import { Service } from "../src/service.ts";
import type { Page, Reader } from "../src/transcript.ts";

export interface Request {
  /** Method and path without key: `POST assemble`. */
  name: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  body: any;
}

type Answer = { status?: number; body?: unknown; headers?: Record<string, string> } | "hang" | "cut";
type Handler = (request: Request) => Answer | Promise<Answer>;

export class Fake {
  readonly requests: Request[] = [];
  readonly handlers = new Map<string, Handler>();
  url = "";
  #server: Server;
  /** Resolves each waiting `aborted()` when a request's connection is closed by the client. */
  #aborts: (() => void)[] = [];

  constructor() {
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  async start(t: TestContext): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    t.after(() => this.stop());
    return this;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  on(name: string, handler: Handler | Answer): this {
    this.handlers.set(name, typeof handler === "function" ? handler : () => handler);
    return this;
  }

  named(name: string): Request[] {
    return this.requests.filter((r) => r.name === name);
  }

  names(): string[] {
    return this.requests.map((r) => r.name);
  }

  aborted(): Promise<void> {
    return new Promise((resolve) => this.#aborts.push(resolve));
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? "/", "http://fake");
    let text = "";
    for await (const chunk of req) text += chunk;
    const rest = url.pathname.replace(/^\/v1\/sessions\/[^/]+\/?/, "").replace(/^\/v1\//, "");
    const name = `${req.method} ${rest || "session"}`;
    const request: Request = {
      name,
      path: url.pathname,
      query: url.searchParams,
      headers: req.headers,
      body: text ? JSON.parse(text) : undefined,
    };
    this.requests.push(request);
    res.on("close", () => {
      if (!res.writableFinished) for (const wake of this.#aborts.splice(0)) wake();
    });
    const handler = this.handlers.get(name) ?? defaults[name];
    const answer: Answer = handler ? await handler(request) : { status: 404, body: { type: "/problems/not-found" } };
    if (answer === "hang") return;
    if (answer === "cut") {
      req.socket.destroy();
      return;
    }
    res.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
    res.end(JSON.stringify(answer.body ?? {}));
  }
}

const defaults: Record<string, Handler> = {
  "GET transcript": () => ({ body: { cursor: null } }),
  "POST transcript": (r) => ({ body: { stored: r.body.entries.length, duplicates: 0, cursor: r.body.cursor, head: 1, epoch: 1 } }),
  "POST assemble": () => ({ body: { messages: [], estimatedTokens: 0, head: 0, epoch: 1 } }),
  "POST commit-turn": () => ({ body: { status: "committed", head: 2, epoch: 1 } }),
  "POST after-turn": () => ({ body: { ingestedCount: 0, head: 2, epoch: 1, compaction: "none" } }),
  "POST ingest-batch": (r) => ({ body: { ingestedCount: r.body.messages.length, seqs: [], head: 1 } }),
  "POST maintain": () => ({ body: { changed: false, bytesFreed: 0, rewrittenEntries: 0 } }),
  "POST reset": () => ({ body: { head: 1, epoch: 2 } }),
  "DELETE session": () => ({ body: {} }),
};

export const problem = (status: number, slug: string, headers?: Record<string, string>): Answer => ({
  status,
  headers,
  body: { type: `https://engined.dev/problems/${slug}`, title: slug, status, detail: `because ${slug}` },
});

export interface Lines {
  info: string[];
  warn: string[];
  error: string[];
}

/** A service that talks to the fake, with short deadlines where a test gives them. */
export function serviceFor(url: string, settings: Record<string, unknown> = {}, dir?: string): { service: Service; lines: Lines; config: Config } {
  const lines: Lines = { info: [], warn: [], error: [] };
  const config = readConfig({ baseUrl: url, gatewayId: "gw-test", ...settings }, (line) => lines.warn.push(line));
  const service = new Service(config, dir ?? mkdtempSync(join(tmpdir(), "engined-plugin-")), {
    info: (l) => lines.info.push(l),
    warn: (l) => lines.warn.push(l),
    error: (l) => lines.error.push(l),
  });
  return { service, lines, config };
}

/** A host that shows this transcript, if any, and compacts when asked. */
export function hostSeams(reader?: Reader, over: Partial<HostSeams> = {}): HostSeams {
  return {
    open: async () => reader,
    compact: async () => ({ ok: true, compacted: true, reason: "by the host" }),
    now: () => performance.now(),
    ...over,
  };
}

/** A host transcript of pages; `null` is its beginning, then the index of the next page. */
export function pages(...list: unknown[][]): Reader {
  return {
    async read(cursor): Promise<Page | "restart" | "later"> {
      const at = cursor === null ? 0 : Number(cursor.replace("c", ""));
      if (!Number.isInteger(at) || at > list.length) return "restart";
      return { entries: list[at] ?? [], cursor: `c${Math.min(at + 1, list.length)}`, more: at + 1 < list.length };
    },
  };
}

export const user = (text: string, at: number, key = `${at}:user`) => ({ role: "user", content: text, timestamp: at, idempotencyKey: key });
export const assistant = (text: string, at: number, id = `r${at}`) => ({
  role: "assistant",
  content: [{ type: "text", text }],
  timestamp: at,
  responseId: id,
  usage: { input: 10, output: 2, cacheRead: 5, cacheWrite: 0, totalTokens: 17 },
  stopReason: "stop",
});
