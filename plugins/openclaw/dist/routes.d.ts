import type { Routes } from "./api.gen.ts";
export type { Routes };
export type Route = keyof Routes;
export type Query<R extends Route> = Routes[R]["query"];
export type Body<R extends Route> = Routes[R]["body"];
export type Answer<R extends Route> = Routes[R]["answer"];
