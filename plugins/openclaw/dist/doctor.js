// Why would this host not use the engine? The host falls back to its own engine
// without a word in many cases; this names them, with the fix.
import { message } from "./client.js";
import { loadSDK } from "./transcript.js";
/** Versions that the end-to-end tests run against. */
export const testedHosts = ["2026.9.6", "2026.6.11"];
/** Whether a host hands out the model's whole window as budget and has no durable turns. */
export function isOlderHost(version) {
    const [year, month] = (version ?? "").split(".").map(Number);
    if (!year || !month)
        return false;
    return year < 2026 || (year === 2026 && month < 9);
}
/** What the host's configuration says about using the engine. */
export function configChecks(config) {
    const plugins = config?.plugins ?? {};
    const slot = plugins.slots?.contextEngine;
    const checks = [];
    checks.push(slot === "engined"
        ? { ok: true, text: "plugins.slots.contextEngine is engined" }
        : { ok: false, text: `plugins.slots.contextEngine is ${slot ?? "unset"}: the host uses its own engine`, fix: 'set it to "engined"' });
    if (plugins.enabled === false)
        checks.push({ ok: false, text: "plugins.enabled is false: no plugin is used", fix: "remove it" });
    if (plugins.entries?.engined?.enabled === false) {
        checks.push({ ok: false, text: "plugins.entries.engined.enabled is false", fix: "set it to true" });
    }
    if (plugins.deny?.includes("engined"))
        checks.push({ ok: false, text: "plugins.deny lists engined", fix: "remove it there" });
    if (plugins.allow && !plugins.allow.includes("engined")) {
        checks.push({ ok: false, text: "plugins.allow does not list engined: the host falls back silently", fix: "add it there" });
    }
    return checks;
}
/** All checks: configuration, host, gateway id, service. */
export async function doctor(api, service, config) {
    const checks = configChecks(config ?? api.config);
    const version = api.runtime?.version;
    checks.push(version && testedHosts.includes(version)
        ? { ok: true, text: `host ${version} is one that is tested` }
        : { ok: true, text: `host ${version ?? "of unknown version"} is not among the tested ones (${testedHosts.join(", ")})` });
    if (isOlderHost(version)) {
        checks.push({ ok: true, text: "this host has no durable turns: turns are told after they end, from its transcript files" });
    }
    else {
        const sdk = await loadSDK();
        checks.push(sdk?.readSessionTranscriptRawDelta
            ? { ok: true, text: "durable turns: the engine declares both transcript semantics and commitTurn; the transcript can be read" }
            : {
                ok: false,
                text: "the host's transcript cannot be read: turns that it never commits (failed, degraded, announced) will be missing",
                fix: "use a tested host version",
            });
    }
    checks.push({ ok: true, text: `gateway id ${service.gatewayId}${service.config.gatewayId ? " (configured)" : " (kept in the state directory)"}` });
    checks.push(await serviceCheck(service));
    return checks;
}
async function serviceCheck(service) {
    const { client, config } = service;
    try {
        const { engines } = await client.call("GET /v1/engines", "", { deadline: config.deadlines.other, probe: true });
        const set = (engines ?? []).filter((e) => e.quarantine).map((e) => e.id);
        if (set.length > 0) {
            return {
                ok: false,
                text: `node ${config.baseUrl} answers, but has set aside: ${set.join(", ")}`,
                fix: `engined engines clear ${set[0]}`,
            };
        }
        return { ok: true, text: `node ${config.baseUrl} answers` };
    }
    catch (error) {
        return { ok: false, text: `node ${config.baseUrl}: ${message(error)}`, fix: "start it, or correct baseUrl and apiKey" };
    }
}
export function render(checks) {
    return checks.map((c) => `${c.ok ? "✓" : "✗"} ${c.text}${c.ok || !c.fix ? "" : ` — ${c.fix}`}`).join("\n");
}
