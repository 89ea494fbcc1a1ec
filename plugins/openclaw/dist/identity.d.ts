import type { PluginApi } from "./host.ts";
/** The directory in which the plugin keeps its own small files. */
export declare function stateDir(api: Pick<PluginApi, "runtime">, env?: NodeJS.ProcessEnv): string;
/**
 * The kept name of this gateway, made on first use. Two processes that start at
 * once agree: the file appears whole, and the first one wins. Throws where the
 * directory cannot be written.
 */
export declare function keptGatewayId(dir: string): string;
