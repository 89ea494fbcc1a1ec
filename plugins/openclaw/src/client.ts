// The HTTP client: one request with a deadline, an abort signal, retries of what
// may be tried again, and the breaker in front. It knows routes, not engines.

import { Breaker } from "./breaker.ts";
import { AwayError, message, ProblemError, reason } from "./errors.ts";
import type { Answer, Body, Query, Route } from "./routes.ts";

export interface CallOptions<R extends Route> {
  /** Values of the path's placeholders besides `key`. */
  path?: Record<string, string>;
  query?: Query<R>;
  body?: Body<R>;
  /** Milliseconds for the call with all its retries. */
  deadline: number;
  signal?: AbortSignal;
  /** Goes out even while the breaker is open. */
  probe?: boolean;
  /** Must not be sent twice. */
  once?: boolean;
  /** The deadline is the rest of a longer one: that it ends says nothing about the service. */
  rest?: boolean;
}

export interface ClientOptions {
  baseUrl: string;
  apiKey?: string;
  breaker?: Breaker;
  fetch?: typeof fetch;
  random?: () => number;
  /** Told how each call that went out ended, its retries done; not of aborted ones. */
  observe?: (route: Route, error: Error | undefined) => void;
}

/** The longest answer that is read, in bytes; a window is far below it. */
const longestAnswer = 64 * 1024 * 1024;
const retriable = new Set([408, 425, 429, 502, 503, 504]);
const attempts = 3;

export class Client {
  readonly breaker: Breaker;
  readonly baseUrl: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;
  readonly #random: () => number;
  readonly #observe: (route: Route, error: Error | undefined) => void;

  constructor(options: ClientOptions) {
    this.baseUrl = options.baseUrl;
    this.breaker = options.breaker ?? new Breaker();
    this.#headers = options.apiKey ? { authorization: `Bearer ${options.apiKey}` } : {};
    this.#fetch = options.fetch ?? fetch;
    this.#random = options.random ?? Math.random;
    this.#observe = options.observe ?? (() => {});
  }

  /**
   * Makes a call. Rejects with a ProblemError for an answer that says no, an
   * AwayError where none came, and the signal's reason after an abort.
   */
  async call<R extends Route>(route: R, key: string, options: CallOptions<R>): Promise<Answer<R>> {
    options.signal?.throwIfAborted();
    if (options.deadline <= 0) throw new AwayError("no time is left for it in this turn");
    if (!this.breaker.allows(options.probe ?? false)) {
      throw new AwayError(`it was away a moment ago (${this.breaker.state.reason})`);
    }
    const end = performance.now() + options.deadline;
    let first: unknown;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#send(route, key, options, end - performance.now());
        this.breaker.succeeded();
        this.#observe(route, undefined);
        return answer;
      } catch (thrown) {
        options.signal?.throwIfAborted();
        // A retry that runs out of time says less than what it was a retry of.
        const error = first !== undefined && performance.now() >= end ? first : thrown;
        first ??= thrown;
        const pause = attempt < attempts && !options.once ? this.#pause(error, attempt) : undefined;
        if (pause !== undefined && performance.now() + pause < end) {
          await sleep(pause, options.signal);
          continue;
        }
        if (options.rest && error instanceof AwayError && error.late) throw error;
        // An answer that says no comes from a service that is there.
        if (error instanceof ProblemError && !retriable.has(error.status)) this.breaker.succeeded();
        else this.breaker.failed(error instanceof AwayError ? error.why : message(error));
        this.#observe(route, error as Error);
        throw error;
      }
    }
  }

  /** Those of the routes that the node's own API document does not have. */
  async lacks(routes: readonly Route[], deadline: number): Promise<Route[]> {
    const response = await this.#fetch(new URL(`${this.baseUrl}/openapi.json`), { redirect: "error", signal: AbortSignal.timeout(deadline) });
    const { paths } = JSON.parse(await textOf(response)) as { paths: Record<string, Record<string, unknown>> };
    const has = (route: Route): boolean => {
      const [method, path] = route.split(" ") as [string, string];
      return Object.entries(paths).some(([p, methods]) => bare(p) === bare(path) && method.toLowerCase() in methods);
    };
    // Placeholders may be named anew.
    const bare = (path: string): string => path.replace(/\{\w+\}/g, "{}");
    return routes.filter((route) => !has(route));
  }

  async #send<R extends Route>(route: R, key: string, options: CallOptions<R>, left: number): Promise<Answer<R>> {
    const [method, template] = route.split(" ") as [string, string];
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(name === "key" ? key : (options.path?.[name] ?? "")),
    );
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers = { ...this.#headers };
    if (options.body !== undefined) headers["content-type"] = "application/json";
    const deadline = AbortSignal.timeout(Math.max(1, Math.ceil(left)));
    const signal = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline;
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(url, {
        method,
        headers,
        body: options.body === undefined ? undefined : JSON.stringify(options.body),
        signal,
        redirect: "error",
      });
      text = await textOf(response);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (error instanceof AwayError) throw error;
      if (deadline.aborted) throw new AwayError(`no answer within ${Math.round(options.deadline)} ms`, { late: true });
      throw new AwayError(reason(error));
    }
    if (!response.ok) throw problem(response, text);
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      throw new AwayError("its answer is no JSON; is baseUrl a node's?", { passing: false });
    }
    if (answer === null || typeof answer !== "object" || Array.isArray(answer)) {
      throw new AwayError("its answer is not what a node says; is baseUrl a node's?", { passing: false });
    }
    return answer as Answer<R>;
  }

  /** How long to wait before another attempt; undefined where none would help. */
  #pause(error: unknown, attempt: number): number | undefined {
    if (error instanceof ProblemError) {
      if (!retriable.has(error.status)) return undefined;
      if (error.retryAfter !== undefined) return error.retryAfter * 1_000;
    } else if (error instanceof AwayError && !error.passing) return undefined;
    const base = 100 * 2 ** (attempt - 1);
    return base / 2 + this.#random() * base;
  }
}

/** An answer's text; refused where it is longer than any that a node gives. */
async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > longestAnswer) throw new AwayError(`its answer is longer than ${longestAnswer} bytes`, { passing: false });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function problem(response: Response, text: string): ProblemError {
  let slug = "";
  let detail = "";
  try {
    const body = JSON.parse(text) as { type?: string; detail?: string; title?: string };
    slug = body.type?.split(/[/#:]/).at(-1) ?? "";
    detail = body.detail ?? body.title ?? "";
  } catch {
    // Something between us and the node answered.
  }
  const after = Number(response.headers.get("retry-after"));
  return new ProblemError(response.status, slug, detail, after > 0 ? after : undefined);
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
