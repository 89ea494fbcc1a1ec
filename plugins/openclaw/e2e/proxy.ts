// A proxy on loopback between a gateway and the service: what is slow, broken or
// away is made here, call by call, so that one service serves all scenarios.

import { createServer, request as plain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { request as secure } from "node:https";
import type { AddressInfo } from "node:net";

export interface Call {
  method: string;
  /** The path without the session: `assemble`, `transcript`, `` for the session itself. */
  route: string;
  key: string;
  body: string;
  status?: number;
}

/** What to do with a call: pass it on, or break it. */
export type Fate =
  | "pass"
  /** The connection is cut before anything is answered. */
  | "cut"
  /** The call is carried out, but its answer never comes. */
  | "swallow"
  | { status: number }
  /** Passed on, but with another API key. */
  | { apiKey: string }
  /** Answered with 200 and this instead. */
  | { body: string }
  | { delay: number };

export class Proxy {
  readonly calls: Call[] = [];
  rule: (call: Call) => Fate = () => "pass";
  #server: Server;
  #target: URL;
  #waiting: { match: (call: Call) => boolean; resolve: (call: Call) => void }[] = [];

  constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  of(key: string, route?: string): Call[] {
    return this.calls.filter((c) => c.key === key && (route === undefined || c.route === route));
  }

  /** The next call that fits, once it has been answered or broken. */
  next(match: (call: Call) => boolean): Promise<Call> {
    return new Promise((resolve) => this.#waiting.push({ match, resolve }));
  }

  #tell(call: Call): void {
    this.#waiting = this.#waiting.filter((w) => {
      if (!w.match(call)) return true;
      w.resolve(call);
      return false;
    });
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of req) body += chunk;
    const at = /^\/v1\/sessions\/([^/?]+)\/?([^?]*)/.exec(req.url ?? "");
    const call: Call = { method: req.method ?? "", key: decodeURIComponent(at?.[1] ?? ""), route: at ? at[2]! : (req.url ?? ""), body };
    this.calls.push(call);
    const fate = this.rule(call);
    if (fate === "cut") {
      req.socket.destroy();
      this.#tell(call);
      return;
    }
    if (typeof fate === "object" && "delay" in fate) await new Promise((r) => setTimeout(r, fate.delay));
    if (typeof fate === "object" && "status" in fate) {
      call.status = fate.status;
      res.writeHead(fate.status, { "content-type": "application/problem+json" }).end(JSON.stringify({ type: "about:made-up", status: fate.status }));
      this.#tell(call);
      return;
    }
    if (typeof fate === "object" && "body" in fate) {
      call.status = 200;
      res.writeHead(200, { "content-type": "text/html" }).end(fate.body);
      this.#tell(call);
      return;
    }
    const headers = { ...req.headers };
    if (typeof fate === "object" && "apiKey" in fate) headers.authorization = `Bearer ${fate.apiKey}`;
    const request = this.#target.protocol === "https:" ? secure : plain;
    const onward = request(
      { host: this.#target.hostname, port: this.#target.port, path: req.url, method: req.method, headers },
      (answer) => {
        call.status = answer.statusCode;
        if (fate === "swallow") {
          answer.resume();
          answer.on("end", () => this.#tell(call));
          return;
        }
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
        answer.on("end", () => this.#tell(call));
      },
    );
    onward.on("error", () => {
      res.destroy();
      this.#tell(call);
    });
    res.on("close", () => onward.destroy());
    onward.end(body);
  }
}
