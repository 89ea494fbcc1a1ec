/** The service answered, and the answer is no. */
export declare class ProblemError extends Error {
    readonly status: number;
    /** The slug at the end of the problem's type: `session-erased`, `stale-head`, … */
    readonly slug: string;
    /** Seconds after which the service wants to be asked again. */
    readonly retryAfter: number | undefined;
    constructor(status: number, slug: string, detail: string, retryAfter?: number);
    /** Whether the same request will be refused for ever. */
    get permanent(): boolean;
}
/**
 * The problem in an error. By name, not by class: the host loads this plugin
 * twice in one process, and the classes of the two are not the same.
 */
export declare function asProblem(error: unknown): ProblemError | undefined;
/** The service did not answer: refused, cut off, too late, nonsense, or known to be away. */
export declare class AwayError extends Error {
    readonly why: string;
    /** Whether the next attempt might fare better. */
    readonly passing: boolean;
    /** Whether it was the deadline that ended it. */
    readonly late: boolean;
    constructor(why: string, how?: {
        passing?: boolean;
        late?: boolean;
    });
}
/** What went wrong, in the words of the deepest cause. */
export declare function reason(error: unknown): string;
export declare function message(error: unknown): string;
