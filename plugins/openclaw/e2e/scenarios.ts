// Scenarios that hold on both hosts, whatever way their turns come by.

import assert from "node:assert/strict";
import { dialogue, keys, until } from "./lab.ts";
import { textOf } from "./mock.ts";
import type { Call } from "./proxy.ts";
import type { Stage } from "./stage.ts";

/** Nothing that the host sent to the model would be refused by a strict provider. */
export function assertValid(stage: Stage): void {
  const bad = stage.model.requests.filter((r) => r.faults.length > 0).map((r) => [r.n, r.faults]);
  assert.deepEqual(bad, []);
}

export function common(stage: Stage): void {
  const { model, service } = stage;
  const modern = stage.version === "2026.9.6";

  stage.scenario("the first turn is served, not degraded", async () => {
    const key = stage.key();
    const reply = await stage.gateway.turn(key, "alpha one");
    assert.match(reply, /reply \d+: alpha one/);
    await until("the turn is stored", async () => (await service.said(key).catch(() => [])).length === 2);
    assert.deepEqual(await service.said(key), ["user: alpha one", `assistant: ${reply}`]);
    assert.doesNotMatch(stage.gateway.log, /degraded to "legacy"|quarantin/i);
    const second = await stage.gateway.turn(key, "alpha two");
    assert.deepEqual(dialogue(model.saw("alpha two")), ["user: alpha one", `assistant: ${reply}`, "user: alpha two"]);
    assert.deepEqual(await service.said(key), ["user: alpha one", `assistant: ${reply}`, "user: alpha two", `assistant: ${second}`]);
    assert.match(await stage.gateway.chat(key, "/engined"), /^✓ served by engined .*\n.*\n.*head \d+, epoch 1/);
    assert.doesNotMatch(await stage.gateway.chat(key, "/engined doctor"), /✗/);
    assertValid(stage);
  });

  stage.scenario("tools: the group is whole in the log and in later windows", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, 'run TOOL:exec:{"command":"echo from-the-tool"}:END');
    await stage.gateway.turn(key, "what came out?");
    const shown = model.saw("what came out?")!;
    assert.deepEqual(shown.messages.map((m) => m.role).filter((r) => r !== "system").slice(0, 4), ["user", "assistant", "tool", "assistant"]);
    assert.ok(shown.messages.some((m) => m.role === "tool" && textOf(m).includes("from-the-tool")));
    assert.ok(shown.tools.length > 0);
    const roles = (await service.events(key)).filter((e) => e.message && e.message.role !== "custom").map((e) => e.message.role);
    assert.deepEqual(roles, ["user", "assistant", "toolResult", "assistant", "user", "assistant"]);
    assertValid(stage);
  });

  stage.scenario("an overflow is compacted and the turn is tried again", async () => {
    const key = stage.key();
    model.replySize = 3_000;
    for (let i = 0; i < 4; i++) await stage.gateway.turn(key, `overflow-topic ${i} ${"apple ".repeat(400)}`);
    model.overflows = 1;
    const reply = await stage.gateway.turn(key, "and now?");
    assert.match(reply, /reply/);
    assert.equal((await service.session(key)).epoch, 2);
    assert.ok((await service.summaries(key)).some((s) => s.live));
    const shown = model.requests.at(-1)!;
    assert.match(shown.messages.map(textOf).join("\n"), /<summary>/);
    const said = await service.said(key);
    // 2026.6.11 itself writes the message anew for the second try.
    assert.equal(said.filter((l) => l === "user: and now?").length, modern ? 1 : 2);
    assert.equal(said.filter((l) => l.startsWith("user: overflow-topic")).length, 4);
    assertValid(stage);
  });

  stage.scenario("/compact with a focus changes the next prompt", async () => {
    const key = stage.key();
    model.replySize = 3_000;
    for (let i = 0; i < 4; i++) await stage.gateway.turn(key, `compact-topic ${i} ${"pear ".repeat(400)}`);
    const answer = await stage.gateway.chat(key, "/compact keep the pears");
    assert.match(answer, /ompact/);
    const [call] = stage.proxy.of(key, "compact");
    assert.equal(JSON.parse(call!.body).customInstructions, "keep the pears");
    assert.equal((await service.session(key)).epoch, 2);
    await stage.gateway.turn(key, "after the compaction");
    const shown = model.saw("after the compaction")!;
    assert.match(shown.messages.map(textOf).join("\n"), /<summary>/);
    assert.ok(!dialogue(shown).some((l) => l.startsWith("user: compact-topic 0")));
    assertValid(stage);
  });

  stage.scenario("a reset leaves nothing of the old conversation", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "an old secret");
    await stage.gateway.rpc("sessions.reset", { key, reason: "new" });
    await until("the reset is told", () => stage.proxy.of(key, "reset").some((c) => c.status !== undefined));
    assert.deepEqual(await service.window(key), []);
    await stage.gateway.turn(key, "a new start");
    assert.deepEqual(dialogue(model.saw("a new start")), ["user: a new start"]);
    await stage.gateway.turn(key, "going on");
    assert.equal(dialogue(model.saw("going on")).length, 3);
    assert.ok(!dialogue(model.saw("going on")).join().includes("old secret"));
    assert.ok((await service.said(key)).includes("user: an old secret"), "the log keeps it");
  });

  stage.scenario("an aborted turn: no commit, and the next turn sees what was said", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "before the abort");
    let open = (): void => {};
    model.gate = new Promise((r) => (open = r));
    const sent = await stage.gateway.rpc("chat.send", { sessionKey: key, message: "never mind", idempotencyKey: crypto.randomUUID() });
    await until("the model is asked", () => model.saw("never mind"));
    await stage.gateway.rpc("chat.abort", { sessionKey: key, runId: sent.runId });
    model.gate = undefined;
    open();
    await stage.gateway.turn(key, "after the abort");
    const shown = dialogue(model.saw("after the abort")).join("\n");
    assert.equal(shown.split("before the abort").length - 1, 2, "the message and its echo in the reply");
    const said = await service.said(key);
    assert.equal(said.filter((l) => l === "user: after the abort").length, 1);
    assert.ok(said.filter((l) => l === "user: never mind").length <= 1);
    assertValid(stage);
  });

  stage.scenario("the service is away for two turns: then everything is there once and in order", async () => {
    const key = stage.key();
    const replies = [await stage.gateway.turn(key, "away 1")];
    stage.proxy.rule = (call) => (call.key === key ? "cut" : "pass");
    replies.push(await stage.gateway.turn(key, "away 2"));
    replies.push(await stage.gateway.turn(key, "away 3"));
    // The host's own messages served meanwhile.
    assert.equal(dialogue(model.saw("away 3")).length, 5);
    stage.proxy.rule = () => "pass";
    replies.push(await stage.gateway.turn(key, "away 4"));
    const expected = replies.flatMap((reply, i) => [`user: away ${i + 1}`, `assistant: ${reply}`]);
    assert.deepEqual(dialogue(model.saw("away 4")), expected.slice(0, 7));
    replies.push(await stage.gateway.turn(key, "away 5"));
    assert.deepEqual(await service.said(key), [...expected, "user: away 5", `assistant: ${replies[4]}`]);
    assert.match(await stage.gateway.chat(key, "/engined"), /served by engined/);
    assertValid(stage);
  });

  stage.scenario("a slow and a failing service cost the user no turn", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "slow 1");
    stage.proxy.rule = (call) => (call.key === key ? { delay: 30_000 } : "pass");
    assert.match(await stage.gateway.turn(key, "slow 2"), /reply \d+: slow 2/);
    stage.proxy.rule = (call) => (call.key === key ? { status: 500 } : "pass");
    assert.match(await stage.gateway.turn(key, "slow 3"), /reply \d+: slow 3/);
    stage.proxy.rule = () => "pass";
    await stage.gateway.turn(key, "slow 4");
    await stage.gateway.turn(key, "slow 5");
    assert.deepEqual(
      (await service.said(key)).filter((l) => l.startsWith("user: ")),
      [1, 2, 3, 4, 5].map((i) => `user: slow ${i}`),
    );
    assert.equal(dialogue(model.saw("slow 5")).length, 9);
  });

  const spawn = (task: string, context?: string, agentId?: string): string => {
    const args = { task, ...(context ? { context } : {}), ...(agentId ? { agentId } : {}) };
    return modern ? `TOOL:tool_call:${JSON.stringify({ id: "sessions_spawn", args })}:END` : `TOOL:sessions_spawn:${JSON.stringify(args)}:END`;
  };

  for (const context of ["isolated", "fork"] as const) {
    stage.scenario(`a sub-agent, ${context}`, async () => {
      const key = stage.key();
      await stage.gateway.turn(key, `seed for ${context}`);
      const task = `child-task-${context}`;
      await stage.gateway.turn(key, spawn(task, context === "fork" ? context : undefined));
      const childRequest = await until("the child asks its model", () =>
        model.requests.find((r) => textOf(r.messages.findLast((m) => m.role === "user" && textOf(m).includes("[Subagent Context]"))).includes(task)),
      );
      const shown = dialogue(childRequest);
      const seeds = shown.filter((l) => l === `user: seed for ${context}`).length;
      assert.equal(seeds, context === "fork" ? 1 : 0, JSON.stringify(shown.map((l) => l.slice(0, 80))));
      const child = await until("the child is known to the service", async () => {
        const { sessions } = await service.get("/v1/sessions?limit=500");
        for (const s of sessions as { sessionKey: string }[]) {
          if (!s.sessionKey.includes(":subagent:")) continue;
          const said = await service.said(s.sessionKey);
          if (said.some((l) => l.includes(task))) return s.sessionKey;
        }
        return undefined;
      });
      assert.ok(stage.proxy.of(key, "subagents").length === 1, "the service is told of the child");
      await until("the child's end is told", () => stage.proxy.calls.some((c) => c.key === child && c.route.endsWith("/ended")));
      await stage.gateway.turn(key, `after ${context}`);
      assertValid(stage);
    });
  }

  stage.scenario("a sub-agent whose launch fails leaves nothing", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "seed of a launch that fails");
    // The launch is broken while the service is being told of the child.
    stage.proxy.rule = (call) => (call.key === key && call.route === "subagents" ? { delay: 1_500 } : "pass");
    const turn = stage.gateway.turn(key, spawn("never-started", undefined, "small"));
    const { body } = await until("the child is prepared", () => stage.proxy.of(key, "subagents")[0]);
    const child = JSON.parse(body).childSessionKey as string;
    const mend = await stage.breakLaunch(child);
    await turn;
    mend();
    const rollback = await until("the rollback is told", () => stage.proxy.of(key).find((c) => c.route.endsWith("/rollback") && c.status));
    assert.equal(rollback.status, 200);
    await assert.rejects(service.session(child), /404/);
    assert.ok(!model.requests.some((r) => r.messages.some((m) => m.role === "user" && textOf(m).includes("[Subagent Context]") && textOf(m).includes("never-started"))));
    await stage.gateway.turn(key, "after the failed launch");
  });

  stage.scenario("a heartbeat is marked", async () => {
    await stage.gateway.turn("agent:main:main", "before the heartbeat");
    await stage.gateway.rpc("wake", { mode: "now", text: "wake up for the test" });
    const commit = await until("the heartbeat's turn is committed", () =>
      stage.proxy.calls.find((c) => c.route === "commit-turn" && c.status === 200 && JSON.parse(c.body).isHeartbeat === true),
    );
    const marked = (await service.events(commit.key)).filter((e) => e.isHeartbeat);
    assert.deepEqual(marked.map((e) => e.message.role), ["user", "assistant"]);
    assertValid(stage);
  });

  for (const how of ["by command", "after an overflow"] as const) {
    stage.scenario(`while the service is away the host's own compaction steps in, ${how}`, async () => {
      const key = stage.key();
      model.replySize = 3_000;
      for (let i = 0; i < 6; i++) await stage.gateway.turn(key, `native-topic ${i} ${"cherry ".repeat(1_500)}`);
      stage.proxy.rule = (call) => (call.key === key ? "cut" : "pass");
      if (how === "by command") {
        assert.match(await stage.gateway.chat(key, "/compact"), /ompact/);
      } else {
        model.overflows = 1;
        assert.match(await stage.gateway.turn(key, "an overflow while it is away"), /reply \d+: /);
      }
      assert.ok(stage.gateway.lines(`compaction of ${key} is left to the host`).length > 0);
      stage.proxy.rule = () => "pass";
      await stage.gateway.turn(key, "native 7");
      await stage.gateway.turn(key, "native 8");
      const said = await service.said(key);
      for (let i = 0; i < 6; i++) assert.equal(said.filter((l) => l.startsWith(`user: native-topic ${i} `)).length, 1);
      for (const i of [7, 8]) assert.equal(said.filter((l) => l === `user: native ${i}`).length, 1);
      assert.match(await stage.gateway.chat(key, "/engined"), /^✓ served by engined/);
      assertValid(stage);
    });
  }

  stage.scenario("API keys: a wrong, an expired and a too narrow one cost no turn, and are said once", async () => {
    const expired = service.createKey("gateway", new Date(Date.now() + 1_000).toISOString());
    await until("the key has expired", () => service.get("/v1/engines", expired).then(() => false, (error: Error) => /401/.test(error.message)));
    for (const [what, apiKey, said] of [
      ["wrong", "e2e-wrong-key", "does not take the API key"],
      ["expired", expired, "does not take the API key"],
      ["narrow", keys.analyst, "refuses POST /v1/sessions/{key}/transcript"],
    ] as const) {
      const key = stage.key();
      const replies = [await stage.gateway.turn(key, `${what} 1`)];
      const before = stage.gateway.lines(said).length;
      stage.proxy.rule = (call) => (call.key === key ? { apiKey } : "pass");
      for (const i of [2, 3]) replies.push(await stage.gateway.turn(key, `${what} ${i}`));
      const shown = await stage.gateway.chat(key, "/engined");
      assert.match(shown, /^! the node at .*API key/m);
      // A key that may read still gives windows; 2026.6.11 asks for them all the same.
      if (modern || what !== "narrow") assert.match(shown, /^✗ NOT served by engined/);
      stage.proxy.rule = () => "pass";
      // One that comes and goes within a minute is not said a second time.
      const after = stage.gateway.lines(said).length;
      assert.ok(what === "expired" ? after <= before + 1 : after === before + 1, `${what}: said ${after - before} times`);
      replies.push(await stage.gateway.turn(key, `${what} 4`));
      replies.push(await stage.gateway.turn(key, `${what} 5`));
      // The host stores the command and its answer too.
      const expected = replies.flatMap((reply, i) => [`user: ${what} ${i + 1}`, `assistant: ${reply}`]);
      assert.deepEqual((await service.said(key)).filter((l) => /^\w+: (reply \d+: )?(wrong|expired|narrow) \d/.test(l)), expected);
    }
    assertValid(stage);
  });

  stage.scenario("a service that answers nonsense costs the user no turn", async () => {
    const key = stage.key();
    const replies = [await stage.gateway.turn(key, "nonsense 1")];
    for (const [i, body] of ["<!doctype html><title>It works!</title>", "{}", '{"messages":[{"role":"us'].entries()) {
      stage.proxy.rule = (call) => (call.key === key ? { body } : "pass");
      replies.push(await stage.gateway.turn(key, `nonsense ${i + 2}`));
    }
    stage.proxy.rule = () => "pass";
    replies.push(await stage.gateway.turn(key, "nonsense 5"));
    replies.push(await stage.gateway.turn(key, "nonsense 6"));
    assert.deepEqual(await service.said(key), replies.flatMap((reply, i) => [`user: nonsense ${i + 1}`, `assistant: ${reply}`]));
    assertValid(stage);
  });

  stage.scenario("a transcript of thousands of entries comes in parts, each entry once", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "the beginning");
    const old = await stage.lengthen(key);
    stage.proxy.rule = (call) => (call.key === key && call.method === "POST" && call.route === "transcript" ? { delay: 1_000 } : "pass");
    let turns = 0;
    for (let known = 0; known < old.length && turns < 12; turns++) {
      assert.match(await stage.gateway.turn(key, `meanwhile ${turns}`), /reply \d+: meanwhile/);
      known = (await service.said(key)).filter((l) => /: old \d+$/.test(l)).length;
    }
    stage.proxy.rule = () => "pass";
    await stage.gateway.turn(key, "the end");
    const said = await service.said(key);
    assert.deepEqual(said.filter((l) => /: old \d+$/.test(l)), old);
    for (let i = 0; i < turns; i++) assert.equal(said.filter((l) => l === `user: meanwhile ${i}`).length, 1);
    assert.ok(stage.proxy.of(key, "transcript").filter((c) => c.method === "POST").length > turns, "in parts");
    assert.match(await stage.gateway.chat(key, "/engined"), /^✓ served by engined/);
    const shown = dialogue(model.saw("the end")).join("\n");
    assert.ok(shown.includes(`user: meanwhile ${turns - 1}`), "the newest turn is shown");
    // What was injected into a transcript 2026.9.6 keeps from every model, whatever the engine says.
    assert.equal(shown.includes(old.at(-1)!.split(": ")[1]!), !modern, "and so is what came last from the transcript");
    assertValid(stage);
  }, { slow: true });

  stage.scenario("the service is killed and started again within a turn", async () => {
    const key = stage.key();
    const replies = [await stage.gateway.turn(key, "restart 1")];
    let open = (): void => {};
    model.gate = new Promise((r) => (open = r));
    const turn = stage.gateway.turn(key, "restart 2");
    await until("the model is asked", () => model.saw("restart 2"));
    await service.end("SIGKILL");
    await service.again();
    model.gate = undefined;
    open();
    replies.push(await turn);
    replies.push(await stage.gateway.turn(key, "restart 3"));
    replies.push(await stage.gateway.turn(key, "restart 4"));
    assert.deepEqual(await service.said(key), replies.flatMap((reply, i) => [`user: restart ${i + 1}`, `assistant: ${reply}`]));
    assertValid(stage);
  });

  stage.scenario("two gateways at once on one session, twenty turns: each is answered and stored once", async () => {
    const key = stage.key();
    const other = await stage.second();
    const hammer = async (gateway: typeof other, name: string): Promise<string[]> => {
      const lines: string[] = [];
      for (let i = 1; i <= 10; i++) {
        const text = `hammer ${name}${i}`;
        const reply = await gateway.turn(key, text);
        assert.match(reply, new RegExp(`reply \\d+: ${text}`));
        lines.push(`user: ${text}`, `assistant: ${reply}`);
      }
      return lines;
    };
    const both = await Promise.all([hammer(stage.gateway, "a"), hammer(other, "b")]);
    await stage.gateway.turn(key, "the last word of a");
    await other.turn(key, "the last word of b");
    const said = (await service.said(key)).slice(0, -4);
    for (const lines of both) {
      const own = new Set(lines);
      assert.deepEqual(said.filter((l) => own.has(l)), lines, "whole, once and in its order");
    }
    assert.equal(said.length, 40);
    const users = dialogue(model.saw("the last word of b")).filter((l) => l.startsWith("user: hammer"));
    assert.equal(users.length, 20, "and the next turn sees all of them");
    assertValid(stage);
  }, { slow: true });

  for (const [what, erases] of [["erased", true], ["hidden where the key may not erase", false]] as const) {
    stage.scenario(`a deleted session is ${what}, and its key begins anew`, async () => {
      const key = stage.key();
      if (!erases) stage.proxy.rule = (call) => (call.key === key && call.method === "DELETE" ? { apiKey: keys.analyst } : "pass");
      await stage.gateway.turn(key, "to be deleted");
      // On a busy machine the host's own store gives up; it says so, and is asked again.
      await until("the host deletes the session", () => stage.gateway.rpc("sessions.delete", { key }).catch(() => undefined));
      const told = (c: Call): boolean => c.key === key && (erases ? c.method === "DELETE" : c.route === "reset") && c.status !== undefined;
      await until("the delete is told", () => stage.proxy.calls.some(told));
      if (erases) await assert.rejects(service.session(key), /404/);
      else assert.deepEqual(await service.window(key), []);
      await stage.gateway.turn(key, "born again");
      await stage.gateway.turn(key, "and grown");
      assert.deepEqual(dialogue(model.saw("and grown")).filter((l) => l.startsWith("user")), ["user: born again", "user: and grown"]);
      assert.equal((await service.said(key)).filter((l) => l === "user: to be deleted").length, erases ? 0 : 1);
      assert.match(await stage.gateway.chat(key, "/engined"), /^✓ served by engined/);
    });
  }

  stage.scenario("a gateway killed during a commit: the turn is there once", async () => {
    const key = stage.key();
    await stage.gateway.turn(key, "kill 1");
    // The commit is carried out, and the gateway dies before it hears of it.
    const isCommit = (c: Call): boolean => c.key === key && c.method === "POST" && c.route === (modern ? "commit-turn" : "transcript");
    stage.proxy.rule = (call) => (isCommit(call) && call.body.includes("kill 2") ? "swallow" : "pass");
    const committed = stage.proxy.next((c) => isCommit(c) && c.body.includes("kill 2"));
    const turn = stage.gateway.turn(key, "kill 2").catch(() => undefined);
    await committed;
    await stage.gateway.stop("SIGKILL");
    stage.proxy.rule = () => "pass";
    await stage.gateway.start();
    void turn;
    await until("a turn after the restart", async () => (await stage.gateway.turn(key, "kill 3").catch(() => "")).includes("kill 3"));
    const said = await service.said(key);
    for (const text of ["kill 1", "kill 2", "kill 3"]) assert.equal(said.filter((l) => l === `user: ${text}`).length, 1, `${text} in ${JSON.stringify(said)}`);
    assert.equal(new Set(said).size, said.length);
    assert.ok(dialogue(model.saw("kill 3")).includes("user: kill 2"));
    assertValid(stage);
  });

  stage.scenario("sixty turns in a small window: no overflow is shown and every request is valid", async () => {
    const key = stage.key(modern ? "small" : "main");
    // 2026.6.11 spends 18k tokens on its own prompt: its window is the larger one,
    // and the messages are longer instead.
    if (modern) model.window = 32_768;
    else model.window = 131_072;
    model.replySize = modern ? 1_500 : 8_000;
    const filler = "word ".repeat(modern ? 300 : 1_500);
    for (let i = 1; i <= 60; i++) {
      const message = i % 10 === 0 ? `turn ${i} TOOL:exec:{"command":"seq 1 200"}:END` : `turn ${i} ${filler}`;
      const reply = await stage.gateway.turn(key, message);
      assert.match(reply, /^reply \d+: /, `turn ${i}: ${reply.slice(0, 200)}`);
    }
    assert.equal(model.refused, 0, "requests refused as too long");
    const said = await service.said(key);
    assert.deepEqual(said.filter((l) => l.startsWith("user: ")).map((l) => l.split(" ")[2]), Array.from({ length: 60 }, (_, i) => String(i + 1)));
    const session = await service.session(key);
    assert.ok(session.compactions > 0, "it was compacted on the way");
    assertValid(stage);
  }, { slow: true });
}
