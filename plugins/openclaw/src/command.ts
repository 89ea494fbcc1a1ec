// The chat command /engined: is this session really served by engined, and how
// does it stand? `/engined doctor` tells why it might not be.

import { asProblem, message } from "./client.ts";
import { doctor, render } from "./doctor.ts";
import type { CommandContext, PluginApi } from "./host.ts";
import type { Service } from "./service.ts";
import { openTranscript } from "./transcript.ts";

export function registerCommand(api: PluginApi, service: Service): void {
  api.registerCommand?.({
    name: "engined",
    description: "Is this session served by engined, and how does it stand? `doctor` checks the host",
    acceptsArgs: true,
    handler: async (ctx) => {
      try {
        if (ctx.args?.trim() === "doctor") return { text: render(await doctor(api, service, ctx.config)) };
        return { text: await status(service, ctx) };
      } catch (error) {
        return { text: `engined: ${message(error)}` };
      }
    },
  });
}

/** The status of a session in a few lines. */
export async function status(service: Service, ctx: CommandContext): Promise<string> {
  if (!ctx.sessionKey) return "engined: this chat has no session";
  const key = service.key(ctx.sessionKey, ctx.sessionId ?? "");
  const note = service.note(key);
  const lines = [`engined · ${key} · gateway ${service.gatewayId}`];

  const served = note.served;
  if (!served) lines.push("no window was asked for since this gateway started");
  else if (served.by === "engined") {
    lines.push(`served by engined ${ago(served.at)}: ${served.messages} messages, about ${served.tokens} tokens, epoch ${served.epoch}`);
  } else lines.push(`NOT served by engined ${ago(served.at)}, but from the host's messages: ${served.why}`);
  if (note.committed) lines.push(`newest turn: ${note.committed.status} ${ago(note.committed.at)}`);

  try {
    const row = await service.client.call("GET /v1/sessions/{key}", key, { deadline: service.config.deadlines.other, probe: true });
    lines.push(
      `node ${service.config.baseUrl}: head ${row.head}, epoch ${row.epoch}, ${row.tokens} tokens, ${row.compactions} compactions, ` +
        `${row.debt > 0 ? `compaction owed (${row.debt} tokens)` : "no compaction owed"}`,
    );
    lines.push(await lag(service, key, ctx).catch((error: unknown) => `lag: ${message(error)}`));
  } catch (error) {
    lines.push(asProblem(error)?.status === 404 ? "the node does not know this session yet" : `node ${service.config.baseUrl}: ${message(error)}`);
  }
  const owed = service.pending.get(key);
  if (owed) lines.push(`still to be told: ${owed.kind}`);
  const breaker = service.client.breaker.state;
  if (breaker.open) lines.push(`the node was away ${ago(breaker.since!)}: ${breaker.reason}`);
  return lines.join("\n");
}

/** How many entries of the host's transcript the service has not been shown. */
async function lag(service: Service, key: string, ctx: CommandContext): Promise<string> {
  const sessionId = ctx.sessionTarget?.sessionId ?? ctx.sessionId;
  if (!sessionId) return "lag: unknown here";
  const params = { sessionId, sessionKey: ctx.sessionKey, sessionTarget: ctx.sessionTarget ?? { agentId: ctx.agentId, sessionId, sessionKey: ctx.sessionKey } };
  const reader = await openTranscript(params).catch(() => undefined);
  if (!reader) return "lag: the host does not show its transcript here";
  const { cursor } = await service.client.call("GET /v1/sessions/{key}/transcript", key, {
    query: { sessionId, gatewayId: service.gatewayId },
    deadline: service.config.deadlines.other,
    probe: true,
  });
  const page = await reader.read(cursor || null);
  if (page === "restart") return "lag: the transcript is synced anew with the next turn";
  if (page === "later") return "lag: the host cannot show its transcript now";
  // The newest turn comes by commit; its entries are linked with the next sync.
  return `lag: ${page.more ? "more than " : ""}${page.entries.length} transcript entries go with the next turn's sync`;
}

function ago(at: number): string {
  const seconds = Math.round((Date.now() - at) / 1_000);
  return seconds < 90 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
}
