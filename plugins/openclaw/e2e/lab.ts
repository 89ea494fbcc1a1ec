// What the end-to-end tests run on: the real service (`engined dev`), the real
// hosts from the cache folder, a mock model, all on loopback.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import * as tls from "node:tls";
import { fileURLToPath, pathToFileURL } from "node:url";
import { textOf, type ModelRequest, type Provider } from "./mock.ts";

export const root = resolve(fileURLToPath(new URL("../../..", import.meta.url)));
export const cache = process.env.ENGINED_OPENCLAW_CACHE ?? join(root, ".tmp/openclaw");
export type Version = "2026.9.6" | "2026.6.11";

const plugin = join(root, "plugins/openclaw");
const binary = join(root, "bin/engined");
const patience = 240_000;

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  const { port } = server.address() as { port: number };
  await new Promise((r) => server.close(r));
  return port;
}

/** A folder for one run; kept where a test failed and ENGINED_E2E_KEEP is set. */
export function runFolder(name: string): string {
  mkdirSync(join(cache, "runs"), { recursive: true });
  const dir = mkdtempSync(join(cache, "runs", `${name}-`));
  process.on("exit", () => {
    if (!process.env.ENGINED_E2E_KEEP) rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}

async function until<T>(what: string, probe: () => T | Promise<T>, limit = patience): Promise<NonNullable<T>> {
  const end = Date.now() + limit;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${limit} ms in vain: ${what}`);
    await new Promise((r) => setTimeout(r, 100));
  }
}

// Whatever ends the tests ends what they started.
const running = new Set<number>();
process.on("exit", () => {
  for (const pid of running) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

class Process {
  protected child: ChildProcess | undefined;
  log = "";

  protected launch(command: string, args: string[], options: { cwd: string; env: NodeJS.ProcessEnv; logFile: string }): void {
    // A group of its own: hosts start themselves again as a child of what was started.
    const child = spawn(command, args, { cwd: options.cwd, env: options.env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.child = child;
    running.add(child.pid!);
    child.once("exit", () => running.delete(child.pid!));
    const file = createWriteStream(options.logFile, { flags: "a" });
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (data: Buffer) => {
        this.log += data;
        file.write(data);
      });
    }
  }

  get alive(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.child;
    if (!child || !this.alive) return;
    const group = (s: NodeJS.Signals): void => {
      try {
        process.kill(-child.pid!, s);
      } catch {
        // All of it is gone.
      }
    };
    const gone = new Promise((r) => child.once("exit", r));
    if (signal === "SIGKILL") group(signal);
    else child.kill(signal);
    const timer = setTimeout(() => group("SIGKILL"), 20_000);
    await gone;
    clearTimeout(timer);
    group("SIGKILL");
    // A process that outlives it must not keep this one by its pipes.
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

/** API keys of the tests' tenant, by scope. */
export const keys = { gateway: "e2e-gateway-key", analyst: "e2e-analyst-key", admin: "e2e-admin-key" };

/** A certificate of our own for 127.0.0.1; undefined where nothing here can make one. */
function certificate(dir: string): { cert: string; key: string } | undefined {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  try {
    execFileSync("openssl", [...args, "-subj", "/CN=engined-e2e", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), readFileSync(cert, "utf8")]);
  return { cert, key };
}

/** The service with a database of its own. It demands API keys, and TLS where openssl is here. */
export class Service extends Process {
  url = "";
  /** The file of the authority that signed its certificate. */
  ca: string | undefined;
  #dir = "";
  #args: string[] = [];

  async start(dir: string): Promise<void> {
    if (!existsSync(binary)) throw new Error("bin/engined is missing: run make build");
    const port = await freePort();
    const pair = certificate(dir);
    this.ca = pair?.cert;
    this.url = `${pair ? "https" : "http"}://127.0.0.1:${port}`;
    this.#dir = dir;
    const all = Object.entries(keys).map(([scope, token]) => `${token}=e2e=${scope}`);
    this.#args = ["dev", "--listen", `127.0.0.1:${port}`, "--data", join(dir, "data"), "--keys", all.join(",")];
    if (pair) this.#args.push("--tls-cert", pair.cert, "--tls-key", pair.key);
    await this.again();
  }

  /** Starts it, also after it was killed: at the same port, with the same data. */
  async again(): Promise<void> {
    this.launch(binary, this.#args, { cwd: this.#dir, env: process.env, logFile: join(this.#dir, "engined.log") });
    await until("engined is ready", async () => {
      if (!this.alive) throw new Error(`engined ended:\n${this.log.slice(-2_000)}`);
      return (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok;
    });
  }

  /** An API key that expires, as `engined keys create` makes it. */
  createKey(scope: string, expires: string): string {
    const args = ["keys", "create", "--data", join(this.#dir, "data"), "--tenant", "e2e", "--scope", scope, "--expires", expires];
    return execFileSync(binary, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  async get<T = any>(path: string, key = keys.admin): Promise<T> {
    const answer = await fetch(this.url + path, { headers: { authorization: `Bearer ${key}` } });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  session = (key: string) => this.get(`/v1/sessions/${encodeURIComponent(key)}`);
  summaries = async (key: string) => (await this.get<{ summaries: any[] }>(`/v1/sessions/${encodeURIComponent(key)}/summaries`)).summaries ?? [];

  /** All events of a session. */
  async events(key: string): Promise<any[]> {
    const all: any[] = [];
    for (let after = 0; ; ) {
      const page = await this.get(`/v1/sessions/${encodeURIComponent(key)}/events?after=${after}&limit=500`);
      all.push(...page.events);
      if (page.events.length < 500) return all;
      after = page.events.at(-1).seq;
    }
  }

  /** What users and assistants said, in the order of the log. */
  async said(key: string): Promise<string[]> {
    return (await this.events(key))
      .filter((e) => e.message && ["user", "assistant"].includes(e.message.role))
      .map((e) => `${e.message.role}: ${contentText(e.message)}`)
      .filter((line) => !line.endsWith(": "));
  }

  async window(key: string, tokenBudget = 100_000): Promise<any[]> {
    const answer = await fetch(`${this.url}/v1/sessions/${encodeURIComponent(key)}/assemble`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${keys.admin}` },
      body: JSON.stringify({ tokenBudget }),
    });
    return ((await answer.json()) as { messages: any[] }).messages;
  }
}

export function contentText(m: { content?: unknown; summary?: string }): string {
  if (typeof m.content === "string") return m.content;
  return ((m.content as { text?: string }[]) ?? []).map((b) => b.text ?? "").join("");
}

export interface GatewayOptions {
  version: Version;
  dir: string;
  /** The mock model's base URL. */
  model: string;
  /** Where the plugin finds the service. */
  service: string;
  settings?: Record<string, unknown>;
  /** The file of an authority that it trusts beside the usual ones. */
  ca?: string;
}

interface Frame {
  event: string;
  payload?: any;
}

/** A real gateway with the plugin loaded by path, and a client on its socket. */
export class Gateway extends Process {
  readonly options: GatewayOptions;
  readonly frames: Frame[] = [];
  #port = 0;
  #client: any;

  constructor(options: GatewayOptions) {
    super();
    this.options = options;
    mkdirSync(join(options.dir, "ws"), { recursive: true });
    mkdirSync(join(options.dir, "state"), { recursive: true });
  }

  get #host(): string {
    return join(cache, `host-${this.options.version}`, "node_modules/openclaw");
  }

  #configure(): void {
    const { dir, model, service, settings, version } = this.options;
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const models = [
      { id: "mock-1", name: "Mock 1", reasoning: false, input: ["text"], cost, contextWindow: 131_072, maxTokens: 2_048 },
      { id: "mock-small", name: "Mock small", reasoning: false, input: ["text"], cost, contextWindow: 32_768, maxTokens: 2_048 },
    ];
    const config = {
      agents: {
        defaults: { workspace: join(dir, "ws"), model: { primary: "mock/mock-1" }, skipBootstrap: true, heartbeat: { every: "4h" } },
        list: [{ id: "main", default: true, subagents: { allowAgents: ["*"] } }, { id: "small", model: "mock/mock-small" }],
      },
      models: {
        mode: "replace",
        ...(version === "2026.9.6" ? { catalogRefresh: { enabled: false } } : {}),
        providers: { mock: { baseUrl: model, apiKey: "sk-mock", api: "openai-completions", models } },
      },
      plugins: {
        allow: ["engined"],
        load: { paths: [plugin] },
        slots: { contextEngine: "engined", memory: "none" },
        entries: { engined: { enabled: true, config: { baseUrl: service, apiKey: keys.gateway, ...settings } } },
      },
      update: { checkOnStart: false },
      gateway: { mode: "local", port: this.#port, bind: "loopback", auth: { mode: "token", token: "t0ken" } },
    };
    writeFileSync(join(dir, "openclaw.json"), JSON.stringify(config, null, 1));
  }

  async start(): Promise<this> {
    const { dir } = this.options;
    this.#port = await freePort();
    this.#configure();
    this.log = "";
    this.launch(process.execPath, [join(this.#host, "openclaw.mjs"), "gateway", "run", "--port", String(this.#port)], {
      cwd: dir,
      logFile: join(dir, "gateway.log"),
      env: {
        PATH: process.env.PATH,
        HOME: dir,
        TMPDIR: process.env.TMPDIR,
        // Proxies that are not there, from scripts/e2e.sh: nothing gets past loopback.
        HTTP_PROXY: process.env.HTTP_PROXY,
        HTTPS_PROXY: process.env.HTTPS_PROXY,
        NO_PROXY: process.env.NO_PROXY,
        NODE_COMPILE_CACHE: join(cache, "compile"),
        ...(this.options.ca ? { NODE_EXTRA_CA_CERTS: this.options.ca } : {}),
        OPENCLAW_STATE_DIR: join(dir, "state"),
        OPENCLAW_CONFIG_PATH: join(dir, "openclaw.json"),
        OPENCLAW_NO_ONBOARD: "1",
        OPENCLAW_SKIP_CHANNELS: "1",
        OPENCLAW_DISABLE_BONJOUR: "1",
        OPENCLAW_NO_AUTO_UPDATE: "1",
        NO_COLOR: "1",
      },
    });
    await until(`gateway ${this.options.version} is ready`, () => {
      if (!this.alive) throw new Error(`the gateway ended:\n${this.log.slice(-4_000)}`);
      return /\[gateway\] ready/.test(this.log);
    });
    await this.#connect();
    return this;
  }

  async #connect(): Promise<void> {
    // The host's own client keeps its device's identity in the state directory.
    process.env.OPENCLAW_STATE_DIR = join(this.options.dir, "client");
    const sdk = await import(pathToFileURL(join(this.#host, "dist/plugin-sdk/gateway-runtime.js")).href);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the gateway does not take a client")), patience);
      this.#client = new sdk.GatewayClient({
        url: `ws://127.0.0.1:${this.#port}`,
        token: "t0ken",
        clientName: "cli",
        clientDisplayName: "e2e",
        clientVersion: "dev",
        mode: "cli",
        role: "operator",
        scopes: ["operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.pairing"],
        preauthHandshakeTimeoutMs: 60_000,
        onEvent: (frame: Frame) => this.frames.push(frame),
        onHelloOk: () => {
          clearTimeout(timer);
          resolve();
        },
      });
      this.#client.start();
    });
  }

  rpc<T = any>(method: string, params: unknown, options: Record<string, unknown> = {}): Promise<T> {
    return this.#client.request(method, params, { timeoutMs: patience, ...options });
  }

  /** One turn; answers the text of the reply. */
  async turn(sessionKey: string, message: string): Promise<string> {
    const done = await this.rpc("agent", { message, sessionKey, idempotencyKey: crypto.randomUUID() }, { expectFinal: true });
    return ((done.result?.payloads ?? []) as { text?: string }[]).map((p) => p.text ?? "").join("\n");
  }

  /** Sends a chat message (a command, mostly) and answers the text of what came back. */
  async chat(sessionKey: string, message: string): Promise<string> {
    const from = this.frames.length;
    const sent = await this.rpc("chat.send", { sessionKey, message, idempotencyKey: crypto.randomUUID() });
    const final = await until(`an answer to ${message}`, () =>
      this.frames.slice(from).find((f) => f.event === "chat" && f.payload?.runId === sent.runId && ["final", "error", "aborted"].includes(f.payload.state)),
    );
    return contentText(final.payload.message ?? { content: final.payload.errorMessage ?? "" });
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.#client?.stop();
    await this.end(signal);
  }

  /** Lines of its log that hold a text. */
  lines(text: string): string[] {
    return this.log.split("\n").filter((line) => line.includes(text));
  }

  /** The id that the plugin made for this gateway. */
  gatewayId(): string {
    return readFileSync(join(this.options.dir, "state/engined/gateway-id"), "utf8").trim();
  }
}

/** The conversation that a model was shown, without what hosts put around it. */
export function dialogue(request: ModelRequest | undefined): string[] {
  return (request?.messages ?? [])
    .filter((m) => m.role !== "system" && !textOf(m).startsWith("<<<BEGIN_OPENCLAW"))
    .map((m) => {
      const calls = (m.tool_calls ?? []).map((c) => `[${c.function.name}]`).join("");
      const text = textOf(m)
        .replace(/^\[\w{3} \d{4}-\d\d-\d\d[^\]]*\] /gm, "")
        .replace(/\n+Runtime: agent=.*$/s, "")
        .trim();
      return `${m.role}: ${calls}${text}`;
    });
}

export { until };
export type { Provider };
