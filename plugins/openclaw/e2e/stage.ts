// The stage of a test file: one service, one model, a proxy and a gateway, made
// once and shared by its scenarios, each with session keys of its own.

import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { cache, Gateway, runFolder, Service, type GatewayOptions, type Version } from "./lab.ts";
import { Provider } from "./mock.ts";
import { Proxy } from "./proxy.ts";

const results = join(cache, "results.json");

export class Stage {
  readonly version: Version;
  readonly service = new Service();
  readonly model = new Provider();
  proxy!: Proxy;
  gateway!: Gateway;
  #dir = "";
  #modelUrl = "";
  #gateways: Gateway[] = [];
  #second: Promise<Gateway> | undefined;
  #used = 0;

  constructor(version: Version) {
    this.version = version;
    before(async () => {
      this.#dir = runFolder(version);
      this.#modelUrl = await this.model.start();
      await this.service.start(this.#dir);
      this.proxy = new Proxy(this.service.url);
      this.gateway = await this.newGateway("a", await this.proxy.start()).start();
    });
    after(async () => {
      await Promise.all(this.#gateways.map((g) => g.stop()));
      this.proxy?.stop();
      this.model.stop();
      await this.service.end("SIGTERM");
    });
  }

  newGateway(name: string, service: string, more: Partial<GatewayOptions> = {}): Gateway {
    const gateway = new Gateway({ version: this.version, dir: join(this.#dir, name), model: this.#modelUrl, service, ...more });
    this.#gateways.push(gateway);
    return gateway;
  }

  /** A second gateway with a state of its own, which reaches the service directly; started where it is needed first. */
  second(): Promise<Gateway> {
    return (this.#second ??= this.newGateway("b", this.service.url, { ca: this.service.ca }).start());
  }

  /** Breaks the launch of a child of the agent `small`; answers what mends it. */
  async breakLaunch(child: string): Promise<() => void> {
    if (this.version === "2026.9.6") {
      const { sessions } = await this.gateway.rpc("sessions.list", { limit: 500 });
      const { sessionId } = (sessions as { key: string; sessionId: string }[]).find((s) => s.key === child)!;
      await this.gateway.rpc("sessions.patch", { key: child, archived: true, expectedSessionId: sessionId });
      return () => {};
    }
    // A folder in the place of its file of sessions.
    const file = join(this.gateway.options.dir, "state/agents/small/sessions/sessions.json");
    renameSync(file, `${file}.away`);
    mkdirSync(join(file, "in the way"), { recursive: true });
    return () => {
      rmSync(file, { recursive: true });
      renameSync(`${file}.away`, file);
    };
  }

  /** Makes a session's transcript long, behind the service's back; answers what it says now in addition. */
  async lengthen(key: string): Promise<string[]> {
    const said: string[] = [];
    if (this.version === "2026.9.6") {
      for (let i = 0; i < 1_100; i++) {
        await this.gateway.rpc("chat.inject", { sessionKey: key, message: `old ${i}` });
        said.push(`assistant: old ${i}`);
      }
      return said;
    }
    const { sessions } = await this.gateway.rpc("sessions.list", { limit: 500 });
    const { sessionId } = (sessions as { key: string; sessionId: string }[]).find((s) => s.key === key)!;
    const file = join(this.gateway.options.dir, `state/agents/main/sessions/${sessionId}.jsonl`);
    const written = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line) as { id: string; message?: { role: string } });
    let parentId = written.at(-1)!.id;
    let lines = "";
    for (let i = 0; i < 3_000; i++) {
      const [role, timestamp] = [i % 2 ? "assistant" : "user", Date.now() - 3_000_000 + i * 1_000];
      const like = written.find((e) => e.message?.role === role)!.message!;
      const entry = { type: "message", id: `old${i}`, parentId, timestamp: new Date(timestamp).toISOString(), message: { ...like, content: [{ type: "text", text: `old ${i}` }], timestamp, responseId: `old-${i}` } };
      lines += `${JSON.stringify(entry)}\n`;
      parentId = entry.id;
      said.push(`${role}: old ${i}`);
    }
    appendFileSync(file, lines);
    return said;
  }

  /** A session key that no other scenario uses. */
  key(agent = "main"): string {
    return `agent:${agent}:s${++this.#used}`;
  }

  /**
   * A scenario. What it found is noted for the table in docs/openclaw.md, and
   * whatever it broke is whole again for the next one.
   */
  scenario(name: string, work: (t: TestContext) => Promise<void>, options: { slow?: boolean } = {}): void {
    const skip = options.slow && process.env.ENGINED_E2E_SHORT ? "left out of the short selection" : false;
    test(`${this.version}: ${name}`, { skip, timeout: 600_000 }, async (t) => {
      const start = Date.now();
      let passed = false;
      try {
        await work(t);
        passed = true;
      } finally {
        this.proxy.rule = () => "pass";
        this.model.overflows = 0;
        this.model.window = Infinity;
        this.model.gate = undefined;
        this.model.replySize = 0;
        note(`${this.version}: ${name}`, { passed, seconds: Math.round((Date.now() - start) / 100) / 10 });
      }
    });
  }
}

function note(name: string, result: { passed: boolean; seconds: number }): void {
  let all: Record<string, unknown> = {};
  try {
    all = JSON.parse(readFileSync(results, "utf8")) as Record<string, unknown>;
  } catch {
    mkdirSync(cache, { recursive: true });
  }
  all[name] = result;
  writeFileSync(results, `${JSON.stringify(all, null, 1)}\n`);
}
