// How a call fails: the service says no, or it does not answer.

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

/** The service did not answer: refused, cut off, too late, nonsense, or known to be away. */
export class AwayError extends Error {
  readonly why: string;
  /** Whether the next attempt might fare better. */
  readonly passing: boolean;
  /** Whether it was the deadline that ended it. */
  readonly late: boolean;

  constructor(why: string, how: { passing?: boolean; late?: boolean } = {}) {
    super(`engined does not answer: ${why}`);
    this.name = "AwayError";
    this.why = why;
    this.passing = how.passing ?? true;
    this.late = how.late ?? false;
  }
}

/** What went wrong, in the words of the deepest cause. */
export function reason(error: unknown): string {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  const code = (cause as { code?: string } | undefined)?.code;
  if (!code) return message(cause);
  return meanings[code] ? `${meanings[code]} (${code})` : code;
}

const untrusted = "its certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of a private authority";

/** What the codes mean that say little by themselves. */
const meanings: Record<string, string> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was cut",
  UND_ERR_SOCKET: "the connection was cut",
  ENOTFOUND: "there is no such host",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
};

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
