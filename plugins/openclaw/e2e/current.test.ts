// Scenarios on 2026.9.6: durable turns, a transcript with a cursor.

import assert from "node:assert/strict";
import { dialogue, until } from "./lab.ts";
import { textOf } from "./mock.ts";
import { assertValid, common } from "./scenarios.ts";
import { Stage } from "./stage.ts";

const stage = new Stage("2026.9.6");
const { model, service } = stage;

common(stage);

/** The host's id of the user message with this text. */
async function entryOf(key: string, text: string): Promise<string> {
  const history = await stage.gateway.rpc("chat.history", { sessionKey: key, limit: 200 });
  const found = history.messages.find((m: any) => m.role === "user" && JSON.stringify(m.content).includes(text));
  const id = found?.__openclaw?.id ?? found?.id ?? found?.messageId;
  assert.ok(id, `an entry id in ${JSON.stringify(found)}`);
  return id as string;
}

stage.scenario("a rewind takes the window back", async () => {
  const key = stage.key();
  const first = await stage.gateway.turn(key, "rewind 1");
  await stage.gateway.turn(key, "rewind 2 unwanted");
  await stage.gateway.turn(key, "rewind 3 unwanted");
  await stage.gateway.rpc("sessions.rewind", { sessionKey: key, entryId: await entryOf(key, "rewind 2 unwanted") });
  await stage.gateway.turn(key, "rewind 2 edited");
  assert.deepEqual(dialogue(model.saw("rewind 2 edited")), ["user: rewind 1", `assistant: ${first}`, "user: rewind 2 edited"]);
  await stage.gateway.turn(key, "rewind 3 edited");
  assert.equal(dialogue(model.saw("rewind 3 edited")).length, 5);
  const said = await service.said(key);
  assert.equal(said.filter((l) => l === "user: rewind 1").length, 1, "the copied transcript is not stored again");
  assert.ok(said.includes("user: rewind 3 unwanted"), "the log keeps what was rewound");
  assertValid(stage);
});

stage.scenario("a branch switch shows the other branch", async () => {
  const key = stage.key();
  await stage.gateway.turn(key, "branch 1");
  const second = await stage.gateway.turn(key, "branch 2 left");
  const { sessionKey } = { sessionKey: key };
  await stage.gateway.rpc("sessions.rewind", { sessionKey, entryId: await entryOf(key, "branch 2 left") });
  await stage.gateway.turn(key, "branch 2 right");
  const { branches } = await stage.gateway.rpc("sessions.branches.list", { sessionKey });
  const other = branches.find((b: any) => !b.active && !b.current && !b.isActive) ?? branches.at(-1);
  await stage.gateway.rpc("sessions.branches.switch", { sessionKey, leafEntryId: other.leafEntryId ?? other.id });
  await stage.gateway.turn(key, "branch 3 on the left");
  const shown = dialogue(model.saw("branch 3 on the left"));
  assert.equal(shown.length, 5);
  assert.deepEqual(shown.slice(2, 4), ["user: branch 2 left", `assistant: ${second}`]);
  const said = await service.said(key);
  assert.equal(new Set(said).size, said.length, "nothing twice in the log");
  assertValid(stage);
});

stage.scenario("a fork has its parent's history up to the fork, once", async () => {
  const key = stage.key();
  const first = await stage.gateway.turn(key, "fork 1");
  await stage.gateway.turn(key, "fork 2 stays behind");
  const fork = await stage.gateway.rpc("sessions.fork", { sessionKey: key, entryId: await entryOf(key, "fork 2 stays behind") });
  const child = fork.sessionKey as string;
  await stage.gateway.turn(child, "fork 2 in the child");
  assert.deepEqual(dialogue(model.saw("fork 2 in the child")), ["user: fork 1", `assistant: ${first}`, "user: fork 2 in the child"]);
  await stage.gateway.turn(key, "fork 3 in the parent");
  assert.ok(!dialogue(model.saw("fork 3 in the parent")).join().includes("in the child"));
  assertValid(stage);
});

stage.scenario("the agent finds what it no longer sees", async () => {
  const key = stage.key();
  model.replySize = 3_000;
  await stage.gateway.turn(key, "the code word is xylophone-4711");
  for (let i = 0; i < 3; i++) await stage.gateway.turn(key, `other topic ${i} ${"plum ".repeat(400)}`);
  await stage.gateway.chat(key, "/compact");
  const call = (id: string, args: unknown) => `TOOL:tool_call:${JSON.stringify({ id, args })}:END`;
  const result = (text: string) => textOf(model.requests.findLast((r) => r.messages.some((m) => m.role === "tool" && textOf(m).includes(text)))?.messages.findLast((m) => m.role === "tool"));
  await until("the search has it", async () => {
    await stage.gateway.turn(key, call("engined_grep", { query: "xylophone-4711", role: "user" }));
    return result("engined_grep").includes("the code word is");
  });
  const [summary] = (await service.summaries(key)).filter((s) => s.live);
  await stage.gateway.turn(key, call("engined_describe", { id: summary.id }));
  assert.match(result("engined_describe"), new RegExp(`Summary ${summary.id}`));
  await stage.gateway.turn(key, call("engined_expand", { id: summary.id }));
  assert.match(result("engined_expand"), /the code word is xylophone-4711/);
  const guidance = textOf(model.requests.at(-1)!.messages[0]);
  assert.match(guidance, /engined_expand/);
  assertValid(stage);
});

stage.scenario("two gateways on one session: each sees the other's turns, verbatim and once", async () => {
  const key = stage.key();
  const other = await stage.second();
  const { gateway } = stage;
  assert.notEqual(gateway.gatewayId(), other.gatewayId());
  const replies = [await gateway.turn(key, 'shared 1 TOOL:exec:{"command":"echo by-a"}:END')];
  replies.push(await other.turn(key, "shared 2 on b"));
  const seen = model.saw("shared 2 on b")!;
  assert.ok(seen.messages.some((m) => m.role === "tool" && textOf(m).includes("by-a")), "with its tool group");
  replies.push(await gateway.turn(key, "shared 3 on a"));
  assert.ok(dialogue(model.saw("shared 3 on a")).includes("user: shared 2 on b"));
  await Promise.all([gateway.turn(key, "shared 4 on a"), other.turn(key, "shared 4 on b")]);
  await other.turn(key, "shared 5 on b");
  await gateway.turn(key, "shared 6 on a");
  const users = dialogue(model.saw("shared 6 on a")).filter((l) => l.startsWith("user: ")).map((l) => l.slice(6));
  assert.deepEqual(users.map((l) => l.split(" TOOL")[0]).sort(), ["shared 1", "shared 2 on b", "shared 3 on a", "shared 4 on a", "shared 4 on b", "shared 5 on b", "shared 6 on a"]);
  const said = await service.said(key);
  assert.equal(new Set(said).size, said.length, "nothing twice");

  // A compaction made for one is seen by the other; so is a reset.
  await gateway.chat(key, "/compact");
  await other.turn(key, "shared 7 on b");
  assert.match(model.saw("shared 7 on b")!.messages.map(textOf).join("\n"), /<summary>/);
  await gateway.rpc("sessions.reset", { key, reason: "reset" });
  await until("the reset is told", () => stage.proxy.of(key, "reset").some((c) => c.status === 200));
  await other.turn(key, "shared 8 on b");
  assert.deepEqual(dialogue(model.saw("shared 8 on b")), ["user: shared 8 on b"]);
  await gateway.turn(key, "shared 9 on a");
  assert.ok(dialogue(model.saw("shared 9 on a")).includes("user: shared 8 on b"), "the transcript's reset entry does not cut again");
  assertValid(stage);
});
