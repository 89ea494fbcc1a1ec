import { Breaker } from "./breaker.ts";
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
export declare class Client {
    #private;
    readonly breaker: Breaker;
    readonly baseUrl: string;
    constructor(options: ClientOptions);
    /**
     * Makes a call. Rejects with a ProblemError for an answer that says no, an
     * AwayError where none came, and the signal's reason after an abort.
     */
    call<R extends Route>(route: R, key: string, options: CallOptions<R>): Promise<Answer<R>>;
    /** Those of the routes that the node's own API document does not have. */
    lacks(routes: readonly Route[], deadline: number): Promise<Route[]>;
}
