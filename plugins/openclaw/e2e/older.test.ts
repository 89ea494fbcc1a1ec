// Scenarios on 2026.6.11: turns are told after they end, transcripts are files.

import assert from "node:assert/strict";
import { dialogue } from "./lab.ts";
import { textOf } from "./mock.ts";
import { assertValid, common } from "./scenarios.ts";
import { Stage } from "./stage.ts";

const stage = new Stage("2026.6.11");
const { model, service } = stage;

common(stage);

stage.scenario("two gateways on one session: each sees the other's turns, verbatim and once", async () => {
  const key = stage.key();
  const other = await stage.second();
  await stage.gateway.turn(key, 'shared 1 TOOL:exec:{"command":"echo by-a"}:END');
  await other.turn(key, "shared 2 on b");
  assert.ok(model.saw("shared 2 on b")!.messages.some((m) => m.role === "tool" && textOf(m).includes("by-a")));
  await stage.gateway.turn(key, "shared 3 on a");
  assert.ok(dialogue(model.saw("shared 3 on a")).includes("user: shared 2 on b"));
  const said = await service.said(key);
  assert.equal(new Set(said).size, said.length, "nothing twice");
  assert.equal(said.length, 6);
  assertValid(stage);
});
