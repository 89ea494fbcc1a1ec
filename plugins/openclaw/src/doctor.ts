// Why would this host not use the engine? The host falls back to its own engine
// without a word in many cases; this names them, with the fix.

import { asProblem, message } from "./errors.ts";
import type { PluginApi } from "./host.ts";
import type { Route } from "./routes.ts";
import type { Service } from "./service.ts";
import { loadSDK } from "./transcript.ts";

export interface Check {
  ok: boolean;
  text: string;
  fix?: string;
}

/** Versions that the end-to-end tests run against. */
export const testedHosts = ["2026.9.6", "2026.6.11"];

/** Every route that this plugin calls. */
export const routesCalled: readonly Route[] = [
  "DELETE /v1/sessions/{key}",
  "GET /v1/engines",
  "GET /v1/search",
  "GET /v1/sessions/{key}",
  "GET /v1/sessions/{key}/events",
  "GET /v1/sessions/{key}/summaries",
  "GET /v1/sessions/{key}/summaries/{id}",
  "GET /v1/sessions/{key}/summaries/{id}/sources",
  "GET /v1/sessions/{key}/transcript",
  "POST /v1/sessions/{key}/after-turn",
  "POST /v1/sessions/{key}/assemble",
  "POST /v1/sessions/{key}/commit-turn",
  "POST /v1/sessions/{key}/compact",
  "POST /v1/sessions/{key}/ingest-batch",
  "POST /v1/sessions/{key}/maintain",
  "POST /v1/sessions/{key}/reset",
  "POST /v1/sessions/{key}/subagents",
  "POST /v1/sessions/{key}/subagents/{child}/ended",
  "POST /v1/sessions/{key}/subagents/{child}/rollback",
  "POST /v1/sessions/{key}/transcript",
];

interface HostConfig {
  plugins?: {
    enabled?: boolean;
    allow?: string[];
    deny?: string[];
    slots?: { contextEngine?: string };
    entries?: Record<string, { enabled?: boolean } | undefined>;
  };
}

/** Whether a host hands out the model's whole window as budget and has no durable turns. */
export function isOlderHost(version: string | undefined): boolean {
  const [year, month] = (version ?? "").split(".").map(Number);
  if (!year || !month) return false;
  return year < 2026 || (year === 2026 && month < 9);
}

/** What the host's configuration says about using the engine. */
export function configChecks(config: Record<string, unknown> | undefined): Check[] {
  const plugins = (config as HostConfig | undefined)?.plugins ?? {};
  const slot = plugins.slots?.contextEngine;
  const checks: Check[] = [];
  checks.push(
    slot === "engined"
      ? { ok: true, text: "plugins.slots.contextEngine is engined" }
      : { ok: false, text: `plugins.slots.contextEngine is ${slot ?? "unset"}: the host uses its own engine`, fix: 'set it to "engined"' },
  );
  if (plugins.enabled === false) checks.push({ ok: false, text: "plugins.enabled is false: no plugin is used", fix: "remove it" });
  if (plugins.entries?.engined?.enabled === false) {
    checks.push({ ok: false, text: "plugins.entries.engined.enabled is false", fix: "set it to true" });
  }
  if (plugins.deny?.includes("engined")) checks.push({ ok: false, text: "plugins.deny lists engined", fix: "remove it there" });
  if (plugins.allow && !plugins.allow.includes("engined")) {
    checks.push({ ok: false, text: "plugins.allow does not list engined: the host falls back silently", fix: "add it there" });
  }
  return checks;
}

/** All checks: configuration, host, gateway id, service. */
export async function doctor(api: PluginApi, service: Service, config?: Record<string, unknown>): Promise<Check[]> {
  const checks = configChecks(config ?? api.config);
  const version = api.runtime?.version;
  checks.push(
    version && testedHosts.includes(version)
      ? { ok: true, text: `host ${version} is one that is tested` }
      : { ok: true, text: `host ${version ?? "of unknown version"} is none of those that are tested (${testedHosts.join(", ")}): it may work` },
  );
  if (isOlderHost(version)) {
    checks.push({ ok: true, text: "this host has no durable turns: turns are told after they end, from its transcript files" });
  } else {
    const sdk = await loadSDK();
    checks.push(
      sdk?.readSessionTranscriptRawDelta
        ? { ok: true, text: "durable turns: the engine declares both transcript semantics and commitTurn; the transcript can be read" }
        : {
            ok: false,
            text: "the host's transcript cannot be read: turns that it never commits (failed, degraded, announced) will be missing",
            fix: "use a tested host version",
          },
    );
  }
  checks.push({ ok: true, text: `gateway id ${service.gatewayId}${service.config.gatewayId ? " (configured)" : " (kept in the state directory)"}` });
  checks.push(...(await nodeChecks(service)));
  return checks;
}

/** Whether the node answers, takes the key for reading and for writing, and has all routes that the plugin calls. */
async function nodeChecks(service: Service): Promise<Check[]> {
  const { client, config } = service;
  const node = `node ${config.baseUrl}`;
  const call = { deadline: config.deadlines.other, probe: true };
  const checks: Check[] = [];
  try {
    const { engines } = await client.call("GET /v1/engines", "", call);
    const aside = (engines ?? []).filter((e) => e.quarantine).map((e) => e.id);
    checks.push(
      aside.length > 0
        ? { ok: false, text: `${node} answers, but has set aside: ${aside.join(", ")}`, fix: `engined engines clear ${aside[0]}` }
        : { ok: true, text: `${node} answers` },
    );
    // The end of a child that never was changes nothing; whoever may tell it may write.
    const path = { child: "engined:doctor" };
    await client.call("POST /v1/sessions/{key}/subagents/{child}/ended", path.child, { ...call, path, body: { reason: "completed" } });
    checks.push({ ok: true, text: config.apiKey ? "the API key may read and write" : "the node asks for no API key" });
  } catch (error) {
    checks.push({ ok: false, text: `${node}: ${message(error)}`, fix: fixOf(error) });
    return checks;
  }
  const lacks = await client.lacks(routesCalled, call.deadline).catch(() => undefined);
  if (lacks === undefined) checks.push({ ok: true, text: `${node} does not show its API: not compared` });
  else if (lacks.length === 0) checks.push({ ok: true, text: "the node has all that this plugin calls" });
  else checks.push({ ok: false, text: `the node is older than this plugin and lacks ${lacks.join(", ")}`, fix: "upgrade the node" });
  return checks;
}

function fixOf(error: unknown): string {
  switch (asProblem(error)?.status) {
    case 401:
      return "set apiKey to a valid key: engined keys create --tenant NAME --scope gateway";
    case 403:
      return "the key needs the scope gateway: engined keys create --tenant NAME --scope gateway";
    default:
      return "start it, or correct baseUrl";
  }
}

export function render(checks: Check[]): string {
  return checks.map((c) => `${c.ok ? "✓" : "✗"} ${c.text}${c.ok || !c.fix ? "" : ` — ${c.fix}`}`).join("\n");
}
