// engined as OpenClaw's context engine. The host calls register several times per
// process and in several modes; each registers the same things and starts nothing.

import { registerCommand } from "./command.ts";
import { readConfig } from "./config.ts";
import { isOlderHost } from "./doctor.ts";
import { Engine } from "./engine.ts";
import { registerHooks } from "./hooks.ts";
import type { Logger, PluginApi } from "./host.ts";
import { stateDir } from "./identity.ts";
import { sharedService } from "./service.ts";
import { registerTools } from "./tools.ts";

export { Engine, info } from "./engine.ts";
export type { Config, Deadlines } from "./config.ts";

const console_: Logger = { info: console.log, warn: console.warn, error: console.error };

export default function register(api: PluginApi): void {
  const log = api.logger ?? console_;
  const config = readConfig(api.pluginConfig, (line) => log.warn(line));
  const service = sharedService(config, stateDir(api), log);
  const wholeWindow = isOlderHost(api.runtime?.version);
  api.registerContextEngine("engined", () => new Engine(service, wholeWindow));
  registerHooks(api, service);
  registerTools(api, service);
  registerCommand(api, service);
}
