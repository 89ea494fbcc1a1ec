import type { PluginApi } from "./host.ts";
export { Engine, info } from "./engine.ts";
export type { Config, Deadlines } from "./config.ts";
export default function register(api: PluginApi): void;
