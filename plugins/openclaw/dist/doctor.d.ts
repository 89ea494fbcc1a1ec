import type { PluginApi } from "./host.ts";
import type { Route } from "./routes.ts";
import type { Service } from "./service.ts";
export interface Check {
    ok: boolean;
    text: string;
    fix?: string;
}
/** Versions that the end-to-end tests run against. */
export declare const testedHosts: string[];
/** Every route that this plugin calls. */
export declare const routesCalled: readonly Route[];
/** Whether a host hands out the model's whole window as budget and has no durable turns. */
export declare function isOlderHost(version: string | undefined): boolean;
/** What the host's configuration says about using the engine. */
export declare function configChecks(config: Record<string, unknown> | undefined): Check[];
/** All checks: configuration, host, gateway id, service. */
export declare function doctor(api: PluginApi, service: Service, config?: Record<string, unknown>): Promise<Check[]>;
export declare function render(checks: Check[]): string;
