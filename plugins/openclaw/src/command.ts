// The chat command /engined: is this session really served by engined, and how
// does it stand? `/engined doctor` tells why it might not be.

import { asProblem, message } from "./errors.ts";
import { doctor, render } from "./doctor.ts";
import type { CommandContext, PluginApi } from "./host.ts";
import type { Service, SessionNote } from "./service.ts";
import { openTranscript, pageLimits } from "./transcript.ts";

export function registerCommand(api: PluginApi, service: Service): void {
  api.registerCommand?.({
    name: "engined",
    description: "Is this session served by engined, and how does it stand? `doctor` checks the host",
    acceptsArgs: true,
    handler: async (ctx) => {
      try {
        const args = ctx.args?.trim() ?? "";
        if (args === "doctor") return { text: render(await doctor(api, service, ctx.config)) };
        if (args !== "") return { text: "engined: /engined tells how this session stands, /engined doctor checks the host and the node" };
        return { text: await status(service, ctx) };
      } catch (error) {
        return { text: `engined: ${message(error)}` };
      }
    },
  });
}

/** How a session stands: the answer first, then one fact a line. */
export async function status(service: Service, ctx: CommandContext): Promise<string> {
  if (!ctx.sessionKey) return "engined: this chat has no session";
  const key = service.key(ctx.sessionKey, ctx.sessionId ?? "");
  const note = service.note(key);
  const lines = [verdict(note)];
  if (note.committed) lines.push(`newest turn: ${turn(note.committed)}`);
  try {
    lines.push(...(await atNode(service, key)));
    lines.push(`transcript: ${await lag(service, key, ctx).catch(message)}`);
  } catch (error) {
    lines.push(`node: ${service.config.baseUrl}: ${message(error)}`);
  }
  const owed = service.pending.get(key);
  if (owed) lines.push(`still to be told to the node: ${owed.kind === "erase" ? "the deletion" : "the reset"} of this session`);
  for (const { why, since } of service.troubles.list()) lines.push(`! ${why} (since ${ago(since)})`);
  lines.push(`session ${key} · gateway ${service.gatewayId}`);
  return lines.join("\n");
}

function verdict({ served, committed }: SessionNote): string {
  if (!served) return "engined was not asked for a window since this gateway started; after the next turn this says more, /engined doctor says why not";
  // While a turn waits in the host's outbox, the host gives the next ones to its own engine.
  if (committed?.status === "waiting" && committed.at > served.at) {
    return "✗ NOT served by engined: the node has not taken the newest turn; until it does, the host uses its own engine";
  }
  if (served.by === "host") return `✗ NOT served by engined, but from the host's messages, ${ago(served.at)}: ${served.why}`;
  if (served.by === "kept") return `✗ NOT served by engined, but from its window before and what came since, ${ago(served.at)}: ${served.why}`;
  return `✓ served by engined ${ago(served.at)}: ${count(served.messages, "message")}, about ${number(served.tokens ?? 0)} tokens, epoch ${served.epoch}`;
}

function turn({ status, why, at }: NonNullable<SessionNote["committed"]>): string {
  switch (status) {
    case "committed":
      return `stored ${ago(at)}`;
    case "duplicate":
      return `stored already, ${ago(at)}`;
    case "refused":
      return `refused for ever and left out, ${ago(at)}: ${why}`;
    case "waiting":
      return `not stored, the host tries again: ${why}`;
    case "left":
      return `not stored, the next turn's sync brings it: ${why}`;
  }
}

async function atNode(service: Service, key: string): Promise<string[]> {
  const { client, config } = service;
  try {
    const row = await client.call("GET /v1/sessions/{key}", key, { deadline: config.deadlines.other, probe: true });
    return [
      `node: ${config.baseUrl}, head ${row.head}, epoch ${row.epoch}`,
      `history: ${number(row.tokens)} tokens, ${count(row.compactions, "compaction")}, ${row.debt > 0 ? `compaction owed (${number(row.debt)} tokens)` : "no compaction owed"}`,
    ];
  } catch (error) {
    if (asProblem(error)?.status !== 404) throw error;
    return [`node: ${config.baseUrl}, which does not know this session yet`];
  }
}

/** How many entries of the host's transcript the service has not been shown. */
async function lag(service: Service, key: string, ctx: CommandContext): Promise<string> {
  const sessionId = ctx.sessionTarget?.sessionId ?? ctx.sessionId;
  if (!sessionId) return "not known here";
  const { sessionFile } = service.note(key);
  const params = { sessionId, sessionKey: ctx.sessionKey, sessionFile, sessionTarget: ctx.sessionTarget ?? { agentId: ctx.agentId, sessionId, sessionKey: ctx.sessionKey } };
  const reader = await openTranscript(params).catch(() => undefined);
  if (!reader) return "the host does not show it here";
  const { cursor } = await service.client.call("GET /v1/sessions/{key}/transcript", key, {
    query: { sessionId, gatewayId: service.gatewayId },
    deadline: service.config.deadlines.other,
    probe: true,
  });
  const page = await reader.read(cursor || null, pageLimits);
  if (page === "restart") return "synced anew with the next turn";
  if (page === "later") return "the host cannot show it now";
  if (page.entries.length === 0) return "all of it is at the node";
  // The newest turn comes by commit; its entries are linked with the next sync.
  return `${page.more ? "more than " : ""}${page.entries.length === 1 ? "1 entry goes" : `${page.entries.length} entries go`} with the next turn's sync`;
}

function number(n: number): string {
  return n.toLocaleString("en-US");
}

function count(n: number, what: string): string {
  return `${number(n)} ${what}${n === 1 ? "" : "s"}`;
}

function ago(at: number): string {
  const seconds = Math.round((Date.now() - at) / 1_000);
  if (seconds < 90) return `${seconds} s ago`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3_600)} h ago`;
}
