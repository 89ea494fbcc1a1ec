// The window that the model is given: the service's, with what it does not hold
// yet behind it, or the host's own messages where the service does not answer.

import { estimate } from "./budget.ts";
import { message } from "./errors.ts";
import type * as host from "./host.ts";
import { behind, missing } from "./livetail.ts";
import type { Answer } from "./routes.ts";
import type { Turn } from "./turn.ts";
import * as wire from "./wire.ts";

/** Rejects only after an abort. */
export async function assemble(turn: Turn, params: host.AssembleParams): Promise<host.AssembleResult> {
  const key = turn.key(params);
  const { client, config, gatewayId, log } = turn.service;
  const note = turn.service.note(key);
  const probe = turn.clock.first();
  const own = Array.isArray(params.messages) ? params.messages : [];
  const running = turn.start === undefined ? [] : own.slice(turn.start);
  turn.tools ??= wire.ownTools(params.availableTools);
  const budget = turn.budget.next(params.tokenBudget, running.length > 0 ? estimate(running) : 0);

  let answer: Answer<"POST /v1/sessions/{key}/assemble">;
  try {
    const wait = (): number => turn.clock.deadline(config.deadlines.assemble);
    const settled = await turn.clock.measure(() => turn.service.settle(key, wait(), probe));
    if (!settled) return fromHost(turn, key, params.sessionId, own, undefined, "the node does not know of a reset yet");
    answer = await turn.clock.measure(() =>
      client.call("POST /v1/sessions/{key}/assemble", key, {
        body: {
          sessionId: params.sessionId,
          gatewayId,
          tokenBudget: budget,
          model: params.model,
          citationsMode: params.citationsMode,
          availableTools: turn.tools,
        },
        deadline: wait(),
        signal: params.abortSignal,
        probe,
      }),
    );
  } catch (error) {
    params.abortSignal?.throwIfAborted();
    return fromHost(turn, key, params.sessionId, own, budget, message(error));
  }
  if (!isWindow(answer)) return fromHost(turn, key, params.sessionId, own, budget, "the node's window is no list of messages");

  const window = withoutPrompt(answer.messages as host.HostMessage[], params.prompt, turn.begun);
  const unsynced = note.synced === false && turn.bootstrapped;
  const tail = unsynced ? unsyncedTail(window, own) : missing(window, running);
  if (!tail) return fromHost(turn, key, params.sessionId, own, budget, `the transcript is not in the service yet (${note.syncFailure})`);
  const tokens = answer.estimatedTokens + estimate(tail);
  if (unsynced && tokens > (budget ?? Infinity) && estimate(own) < tokens) {
    return fromHost(turn, key, params.sessionId, own, budget, `too much of the transcript is not in the service yet (${note.syncFailure})`);
  }

  const messages = tail.length > 0 ? [...window, ...tail] : window;
  if (budget !== undefined) note.budget = budget;
  note.sessionId = params.sessionId;
  note.served = { by: "engined", at: Date.now(), messages: messages.length, tokens, epoch: answer.epoch };
  turn.service.windows.keep(key, params.sessionId, messages);
  turn.service.troubles.end(`window ${key}`, `${key} is served by the node again`);
  if (answer.overBudget) {
    log.warn(`engined: ${key} does not fit: ${answer.overBudget.needed} tokens of ${answer.overBudget.budget}`);
  }
  return {
    messages,
    estimatedTokens: tokens,
    systemPromptAddition: typeof answer.systemPromptAddition === "string" ? answer.systemPromptAddition : undefined,
    promptAuthority: "assembled",
    contextProjection: answer.contextProjection as host.AssembleResult["contextProjection"],
  };
}

function isWindow(answer: Answer<"POST /v1/sessions/{key}/assemble">): boolean {
  return (
    Number.isFinite(answer.estimatedTokens) &&
    Array.isArray(answer.messages) &&
    answer.messages.every((m: unknown) => m !== null && typeof m === "object" && typeof (m as host.HostMessage).role === "string")
  );
}

/**
 * The host's own messages; where those are too many, since only the service has
 * summaries of them, the last window that the service gave and what came since.
 * Why is said once a session; what is wrong with the node was said for all of them.
 */
function fromHost(
  turn: Turn,
  key: string,
  sessionId: string,
  own: host.HostMessage[],
  budget: number | undefined,
  why: string,
): host.AssembleResult {
  const { service } = turn;
  let messages = own;
  const kept = budget !== undefined && estimate(own) > budget ? service.windows.kept(key, sessionId) : undefined;
  const since = kept && behind(kept, own);
  if (kept && since && estimate(kept) + estimate(since) <= budget!) messages = [...kept, ...since];
  service.note(key).served = { by: messages === own ? "host" : "kept", why, at: Date.now(), messages: messages.length };
  service.troubles.begin(`window ${key}`, `${key} is served from the host's messages: ${why}`, key);
  return { messages, estimatedTokens: estimate(messages), promptAuthority: "assembled" };
}

/**
 * The host's messages behind a window of a service that has not been shown all of
 * the transcript; undefined: the window cannot be trusted, a reset may be among
 * what it lacks.
 */
function unsyncedTail(window: host.HostMessage[], own: host.HostMessage[]): host.HostMessage[] | undefined {
  if (own.length === 0) return window.length === 0 ? [] : undefined;
  return window.length === 0 ? undefined : behind(window, own);
}

/** The host puts the prompt behind the window itself; a retry's sync may have brought it already. */
function withoutPrompt(window: host.HostMessage[], prompt: string | undefined, begun: number): host.HostMessage[] {
  const last = window.at(-1);
  if (!prompt || last?.role !== "user" || typeof last.timestamp !== "number" || last.timestamp < begun) return window;
  const text = plainText(last);
  return text !== "" && prompt.includes(text) ? window.slice(0, -1) : window;
}

function plainText(message: host.HostMessage): string {
  if (typeof message.content === "string") return message.content;
  if (!Array.isArray(message.content)) return "";
  return (message.content as { type?: string; text?: string }[]).map((b) => (b?.type === "text" ? b.text : "")).join("\n");
}
