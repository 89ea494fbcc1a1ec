import type { Routes as Described } from "./api.gen.ts";
type Row = Record<string, unknown>;
/** Calls whose names are fixed; one that the document describes wins. */
interface Named {
    "GET /v1/sessions/{key}/transcript": {
        query: {
            sessionId: string;
            gatewayId?: string;
        };
        body: undefined;
        answer: {
            cursor?: string | null;
        };
    };
    "POST /v1/sessions/{key}/transcript": {
        query: Record<never, never>;
        body: {
            sessionId: string;
            gatewayId?: string;
            cursor: string;
            entries: unknown[];
            lifecycleRevision?: string;
        };
        answer: {
            stored: number;
            duplicates: number;
            cursor?: string | null;
            head: number;
            epoch: number;
        };
    };
    "POST /v1/sessions/{key}/subagents": {
        query: Record<never, never>;
        body: {
            childSessionKey: string;
            contextMode?: "isolated" | "fork";
            ttlMs?: number;
            parentSessionId?: string;
            childSessionId?: string;
            gatewayId?: string;
        };
        answer: {
            preparationId?: string;
        };
    };
    "POST /v1/sessions/{key}/subagents/{child}/rollback": {
        query: Record<never, never>;
        body: Row;
        answer: Row;
    };
    "POST /v1/sessions/{key}/subagents/{child}/ended": {
        query: Record<never, never>;
        body: {
            reason: string;
        };
        answer: Row;
    };
    "DELETE /v1/sessions/{key}": {
        query: Record<never, never>;
        body: undefined;
        answer: Row;
    };
    "GET /v1/search": {
        query: {
            q: string;
            sessionKey?: string;
            role?: string;
            limit?: number;
            after?: string;
        };
        body: undefined;
        answer: {
            hits: SearchHit[];
            next?: unknown;
        };
    };
}
/** One place where the words were found. */
export interface SearchHit {
    sessionKey: string;
    seq: number;
    role?: string;
    kind?: string;
    snippet: string;
}
export type Routes = Described & Omit<Named, keyof Described>;
export type Route = keyof Routes;
export type Query<R extends Route> = Routes[R]["query"];
export type Body<R extends Route> = Routes[R]["body"];
export type Answer<R extends Route> = Routes[R]["answer"];
export {};
