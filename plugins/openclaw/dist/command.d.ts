import type { CommandContext, PluginApi } from "./host.ts";
import type { Service } from "./service.ts";
export declare function registerCommand(api: PluginApi, service: Service): void;
/** The status of a session in a few lines. */
export declare function status(service: Service, ctx: CommandContext): Promise<string>;
