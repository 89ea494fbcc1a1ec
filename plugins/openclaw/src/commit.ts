// Telling the service of a turn that ended: by commit where the host has durable
// turns, after the turn where it has not.

import { asProblem, message } from "./errors.ts";
import type * as host from "./host.ts";
import type { Body } from "./routes.ts";
import { sync } from "./sync.ts";
import { entriesOfTurn, type Reader } from "./transcript.ts";
import type { Turn } from "./turn.ts";
import * as wire from "./wire.ts";

/**
 * Stores an accepted turn. Rejects where the host's outbox must try again, and
 * only there: a turn that is refused for ever would block the session.
 */
export async function commitTurn(turn: Turn, params: host.CommitTurnParams): Promise<{ status: "committed" | "duplicate" }> {
  const key = turn.key(params);
  const { log } = turn.service;
  const note = turn.service.note(key);
  turn.clock.first();
  try {
    const status = await commit(turn, key, {
      sessionId: params.sessionId,
      advancementKey: params.advancementKey,
      admission: wire.anchor(params.admission),
      terminal: wire.anchor(params.terminal),
      messages: params.messages,
      isHeartbeat: params.isHeartbeat || undefined,
      usage: wire.usage(params.messages),
      tokenBudget: note.budget,
      runtimeContext: wire.runtimeContext(params.runtimeContext, note.budget),
    });
    note.committed = { status, at: Date.now() };
    return { status };
  } catch (error) {
    if (asProblem(error)?.permanent) {
      log.error(`engined: a turn of ${key} was refused for ever and is left out: ${message(error)}`);
      note.committed = { status: "refused", why: message(error), at: Date.now() };
      return { status: "duplicate" };
    }
    note.committed = { status: "waiting", why: message(error), at: Date.now() };
    throw error;
  }
}

async function commit(turn: Turn, key: string, body: Body<"POST /v1/sessions/{key}/commit-turn">): Promise<"committed" | "duplicate"> {
  const { client, config, gatewayId } = turn.service;
  const { status } = await turn.clock.measure(() =>
    client.call("POST /v1/sessions/{key}/commit-turn", key, {
      body: { ...body, gatewayId },
      deadline: turn.clock.deadline(config.deadlines.commit, true),
      probe: true,
    }),
  );
  // What is not said to be stored is not taken for stored.
  if (status !== "committed" && status !== "duplicate") throw new Error(`the node's answer to a commit is not known: ${String(status)}`);
  return status;
}

/** The older family: tells what a turn added, step by step. Never rejects. */
export async function afterTurn(turn: Turn, params: host.AfterTurnParams): Promise<void> {
  turn.start ??= params.prePromptMessageCount;
  const last = params.messages.at(-1);
  // In the tool loop the running turn is this plugin's live tail; it is told whole at its end.
  if (!last || last.role !== "assistant" || hasCalls(last)) return;
  const key = turn.key(params);
  const note = turn.service.note(key);
  turn.clock.first();
  try {
    await tell(turn, key, params);
    note.committed = { status: "committed", at: Date.now() };
    turn.service.troubles.end(`turn ${key}`);
  } catch (error) {
    note.committed = { status: "left", why: message(error), at: Date.now() };
    turn.service.troubles.begin(`turn ${key}`, `turns of ${key} are left to the next sync: ${message(error)}`, key);
  }
}

/** With a transcript the turn goes as entries, which have ids; else as messages. */
async function tell(turn: Turn, key: string, params: host.AfterTurnParams): Promise<void> {
  const { service, clock } = turn;
  const wait = (): number => clock.deadline(service.config.deadlines.commit, true);
  const reader = await turn.seams.open(params);
  service.note(key).sessionFile = params.sessionFile;
  if (reader) {
    if (params.isHeartbeat && (await commitHeartbeat(turn, key, params, reader))) return;
    const result = await clock.measure(() => sync(service, key, params, { deadline: wait(), probe: true, reader }));
    if (!result.complete) throw new Error(result.reason);
  }
  const budget = service.note(key).budget;
  const { head } = await clock.measure(() =>
    service.client.call("POST /v1/sessions/{key}/after-turn", key, {
      body: {
        sessionId: params.sessionId,
        gatewayId: service.gatewayId,
        messages: reader ? [] : params.messages,
        prePromptMessageCount: reader ? 0 : params.prePromptMessageCount,
        isHeartbeat: params.isHeartbeat || undefined,
        tokenBudget: budget,
        usage: wire.usage(params.messages),
        runtimeContext: wire.runtimeContext(params.runtimeContext, budget),
      },
      deadline: wait(),
      probe: true,
    }),
  );
  if (!Number.isInteger(head)) throw new Error("the node's answer to a turn is not known");
}

/**
 * Transcript entries do not say that they are a heartbeat's, a commit does. Its
 * anchors are the entries' own ids, so the next sync knows them again. Answers
 * false where the entries are not to be found.
 */
async function commitHeartbeat(turn: Turn, key: string, params: host.AfterTurnParams, reader: Reader): Promise<boolean> {
  const range = await entriesOfTurn(reader, params.messages.at(-1)!);
  const first = range?.[0];
  const last = range?.at(-1);
  if (!range || !first || !last) return false;
  const { sessionId } = params;
  const budget = turn.service.note(key).budget;
  await commit(turn, key, {
    sessionId,
    advancementKey: `${turn.service.gatewayId}:${sessionId}:${last.id}`,
    admission: { sessionId, entryId: first.id, role: "user" },
    terminal: { sessionId, entryId: last.id },
    messages: range.map((e) => e.message),
    isHeartbeat: true,
    usage: wire.usage(params.messages.slice(turn.start)),
    tokenBudget: budget,
    runtimeContext: wire.runtimeContext(params.runtimeContext, budget),
  });
  return true;
}

function hasCalls(message: host.HostMessage): boolean {
  return (
    Array.isArray(message.content) &&
    (message.content as { type?: string }[]).some((b) => ["toolCall", "toolUse", "functionCall"].includes(b?.type ?? ""))
  );
}
