// The live tail: messages of the host that the service does not hold yet. They
// are shown behind the service's window, none of them twice.

import type { HostMessage } from "./host.ts";

/**
 * Marks by which a message is known again. The host's two forms of one message
 * are not equal (tool ids rewritten, details dropped), so text is the last resort.
 */
export function marks(message: HostMessage): string[] {
  const role = String(message.role);
  const out: string[] = [];
  const text = (key: string): string | undefined =>
    typeof message[key] === "string" && message[key] !== "" ? (message[key] as string) : undefined;
  const key = text("idempotencyKey");
  if (key) out.push(`key:${key}`);
  const response = role === "assistant" ? text("responseId") : undefined;
  if (response) out.push(`response:${response}`);
  const call = role === "toolResult" ? text("toolCallId")?.replace(/[^A-Za-z0-9]/g, "") : undefined;
  if (typeof message.timestamp === "number") out.push(`at:${role}:${message.timestamp}:${call ?? ""}`);
  if (out.length === 0) out.push(`text:${role}:${call ?? ""}:${JSON.stringify(message.content)}`);
  return out;
}

function known(window: readonly HostMessage[]): (message: HostMessage) => boolean {
  const seen = new Set(window.flatMap(marks));
  return (message) => marks(message).some((mark) => seen.has(mark));
}

/** Those of the running turn's messages that are not in the window. */
export function missing(window: readonly HostMessage[], turn: readonly HostMessage[]): HostMessage[] {
  const isKnown = known(window);
  return turn.filter((message) => !isKnown(message));
}

/**
 * The host's messages behind the newest one that the window has too; undefined
 * where the two have nothing in common, so that no place for a tail is known.
 */
export function behind(window: readonly HostMessage[], host: readonly HostMessage[]): HostMessage[] | undefined {
  const isKnown = known(window);
  for (let i = host.length - 1; i >= 0; i--) {
    if (isKnown(host[i]!)) return host.slice(i + 1);
  }
  return host.length === 0 ? [] : undefined;
}
