import type { CommandContext, PluginApi } from "./host.ts";
import type { Service } from "./service.ts";
export declare function registerCommand(api: PluginApi, service: Service): void;
/** How a session stands: the answer first, then one fact a line. */
export declare function status(service: Service, ctx: CommandContext): Promise<string>;
