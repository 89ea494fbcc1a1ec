import type { PluginApi } from "./host.ts";
import type { Service } from "./service.ts";
export declare function registerHooks(api: PluginApi, service: Service): void;
