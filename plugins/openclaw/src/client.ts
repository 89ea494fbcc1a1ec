// The HTTP client: one request with a deadline, an abort signal, retries of what
// may be tried again, and the breaker in front. It knows routes, not engines.

import { Breaker } from "./breaker.ts";
import type { Answer, Body, Query, Route } from "./routes.ts";

/** The service answered, and the answer is no. */
export class ProblemError extends Error {
  readonly status: number;
  /** The slug at the end of the problem's type: `session-erased`, `stale-head`, … */
  readonly slug: string;
  /** Seconds after which the service wants to be asked again. */
  readonly retryAfter: number | undefined;

  constructor(status: number, slug: string, detail: string, retryAfter?: number) {
    super(`engined answered ${status} ${slug}${detail ? `: ${detail}` : ""}`);
    this.name = "ProblemError";
    this.status = status;
    this.slug = slug;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request will be refused for ever. */
  get permanent(): boolean {
    return this.status >= 400 && this.status < 500 && ![401, 403, 408, 425, 429].includes(this.status);
  }
}

/**
 * The problem in an error. By name, not by class: the host loads this plugin
 * twice in one process, and the classes of the two are not the same.
 */
export function asProblem(error: unknown): ProblemError | undefined {
  return error instanceof Error && error.name === "ProblemError" ? (error as ProblemError) : undefined;
}

/** The service did not answer: refused, cut off, too late, or known to be away. */
export class AwayError extends Error {
  constructor(why: string) {
    super(`engined does not answer: ${why}`);
    this.name = "AwayError";
  }
}

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
}

export interface ClientOptions {
  baseUrl: string;
  apiKey?: string;
  breaker?: Breaker;
  fetch?: typeof fetch;
  random?: () => number;
}

const retriable = new Set([408, 425, 429, 502, 503, 504]);
const attempts = 3;

export class Client {
  readonly breaker: Breaker;
  readonly baseUrl: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;
  readonly #random: () => number;

  constructor(options: ClientOptions) {
    this.baseUrl = options.baseUrl;
    this.breaker = options.breaker ?? new Breaker();
    this.#headers = options.apiKey ? { authorization: `Bearer ${options.apiKey}` } : {};
    this.#fetch = options.fetch ?? fetch;
    this.#random = options.random ?? Math.random;
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
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#send(route, key, options, end - performance.now());
        this.breaker.succeeded();
        return answer;
      } catch (error) {
        options.signal?.throwIfAborted();
        const pause = attempt < attempts && !options.once ? this.#pause(error, attempt) : undefined;
        if (pause !== undefined && performance.now() + pause < end) {
          await sleep(pause, options.signal);
          continue;
        }
        // An answer that says no comes from a service that is there.
        if (error instanceof ProblemError && !retriable.has(error.status)) this.breaker.succeeded();
        else this.breaker.failed(message(error));
        throw error;
      }
    }
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
      text = await response.text();
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (deadline.aborted) throw new AwayError(`no answer within ${options.deadline} ms`);
      throw new AwayError(reason(error));
    }
    if (!response.ok) throw problem(response, text);
    try {
      return JSON.parse(text) as Answer<R>;
    } catch {
      throw new AwayError("its answer is no JSON; is this URL a node's?");
    }
  }

  /** How long to wait before another attempt; undefined where none would help. */
  #pause(error: unknown, attempt: number): number | undefined {
    if (error instanceof ProblemError) {
      if (!retriable.has(error.status)) return undefined;
      if (error.retryAfter !== undefined) return error.retryAfter * 1_000;
    }
    const base = 100 * 2 ** (attempt - 1);
    return base / 2 + this.#random() * base;
  }
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

/** What went wrong, in the words of the deepest cause. */
function reason(error: unknown): string {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  const code = (cause as { code?: string } | undefined)?.code;
  return code ? `${code}` : message(cause);
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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
