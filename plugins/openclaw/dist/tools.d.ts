import type { AgentTool, PluginApi } from "./host.ts";
import type { Service } from "./service.ts";
export declare const toolNames: string[];
export declare function registerTools(api: PluginApi, service: Service): void;
/** The tools of one session. */
export declare function tools(service: Service, key: string): AgentTool[];
