// The host's session hooks. They tell at once what a transcript tells only later:
// that a conversation was reset or deleted.

import type { PluginApi, SessionEvent } from "./host.ts";
import type { Service } from "./service.ts";

export function registerHooks(api: PluginApi, service: Service): void {
  api.on?.("session_end", async (event: SessionEvent, ctx: SessionEvent) => {
    const sessionKey = event.sessionKey ?? ctx?.sessionKey;
    const sessionId = event.sessionId ?? ctx?.sessionId;
    if (!sessionKey) return;
    const key = service.key(sessionKey, sessionId ?? "");
    switch (event.reason) {
      case "reset":
      case "new":
        await service.step(key, { kind: "reset", sessionId, nextSessionId: event.nextSessionId, reason: event.reason });
        service.forget(key);
        break;
      case "deleted":
        await service.step(key, { kind: "erase", sessionId });
        service.forget(key);
        break;
      // idle, daily, compaction, shutdown, restart: the conversation goes on, or
      // its transcript says that it does not.
    }
  });
  api.on?.("session_start", (event: SessionEvent, ctx: SessionEvent) => {
    const sessionKey = event.sessionKey ?? ctx?.sessionKey;
    if (sessionKey) service.note(service.key(sessionKey, "")).sessionId = event.sessionId ?? ctx?.sessionId;
  });
  api.on?.("gateway_start", async () => {
    for (const key of service.pending.keys()) await service.settle(key, service.config.deadlines.other, true);
  });
}
