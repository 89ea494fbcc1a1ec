// engined as OpenClaw's context engine. The host calls register several times per
// process and in several modes; each registers the same things and starts nothing.
import { registerCommand } from "./command.js";
import { readConfig } from "./config.js";
import { isOlderHost } from "./doctor.js";
import { Engine } from "./engine.js";
import { registerHooks } from "./hooks.js";
import { stateDir } from "./identity.js";
import { sharedService } from "./service.js";
import { registerTools } from "./tools.js";
export { Engine, info } from "./engine.js";
const console_ = { info: console.log, warn: console.warn, error: console.error };
export default function register(api) {
    const log = api.logger ?? console_;
    const config = readConfig(api.pluginConfig, (line) => log.warn(line));
    const service = sharedService(config, stateDir(api), log);
    const wholeWindow = isOlderHost(api.runtime?.version);
    api.registerContextEngine("engined", () => new Engine(service, wholeWindow));
    registerHooks(api, service);
    registerTools(api, service);
    registerCommand(api, service);
}
