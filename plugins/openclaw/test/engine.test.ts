import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { TurnClock } from "../src/clock.ts";
import { Engine, info } from "../src/engine.ts";
import type { CommitTurnParams, CompactParams } from "../src/host.ts";
import type { HostSeams } from "../src/seams.ts";
import type { Reader } from "../src/transcript.ts";
import { assistant, Fake, pages, problem, serviceFor, user } from "./fake.ts";

const session = { sessionId: "s-1", sessionKey: "agent:main:main" };
const history = [user("one", 1), assistant("first", 2)];

async function setup(t: TestContext, settings: Record<string, unknown> = {}, reader?: Reader, wholeWindow = false) {
  const fake = await new Fake().start(t);
  const made = serviceFor(fake.url, settings);
  const delegated: CompactParams[] = [];
  const seams: HostSeams = {
    now: () => performance.now(),
    open: async () => reader,
    compact: async (params) => {
      delegated.push(params);
      return { ok: true, compacted: true, reason: "by the host" };
    },
  };
  const engine = () => new Engine(made.service, wholeWindow, seams);
  return { fake, ...made, engine, delegated, seams };
}

const turn = (over: Partial<CommitTurnParams> = {}): CommitTurnParams => ({
  ...session,
  advancementKey: "turn-1",
  admission: { entryId: "e1", storePath: "/secret/path", logicalTurnId: "turn-1", role: "user" },
  terminal: { entryId: "e2", storePath: "/secret/path" },
  messages: history,
  runtimeContext: { provider: "mock", modelId: "m", config: { token: "SECRET" }, skillsSnapshot: ["SECRET"], tokenBudget: 32_768 },
  ...over,
});

test("the engine declares what the host asks of durable turns", () => {
  assert.equal(info.transcriptSemantics.currentTurnFence, "before-current-turn-entry-v1");
  assert.equal(info.transcriptSemantics.turnAdvancementIdempotency, "atomic-idempotent-v1");
  assert.equal(info.ownsCompaction, true);
  assert.equal(typeof Engine.prototype.commitTurn, "function");
});

test("the service's window is the answer", async (t) => {
  const { fake, service, engine } = await setup(t);
  fake.on("POST assemble", {
    body: { messages: history, estimatedTokens: 42, systemPromptAddition: "look", contextProjection: { mode: "per_turn", epoch: "1", fingerprint: "f" }, head: 2, epoch: 1 },
  });
  const result = await engine().assemble({ ...session, messages: [], tokenBudget: 17_973, availableTools: new Set(["exec", "engined_grep"]), prompt: "secret prompt" });
  assert.deepEqual(result.messages, history);
  assert.equal(result.estimatedTokens, 42);
  assert.equal(result.systemPromptAddition, "look");
  assert.equal(service.note("agent:main:main").served?.by, "engined");
  const body = fake.named("POST assemble")[0]!.body;
  assert.equal(body.tokenBudget, 17_408, "rounded down");
  assert.deepEqual(body.availableTools, ["engined_grep"]);
  assert.equal(body.prompt, undefined);
  assert.equal(body.gatewayId, "gw-test");
});

test("the session key is sent percent-encoded, the API key as a bearer", async (t) => {
  const { fake, engine } = await setup(t, { apiKey: "ek_1", keyPrefix: "home/" });
  await engine().assemble({ sessionId: "s", sessionKey: "agent:main:über x", messages: [] });
  const request = fake.requests[0]!;
  assert.equal(request.path, "/v1/sessions/home%2Fagent%3Amain%3A%C3%BCber%20x/assemble");
  assert.equal(request.headers.authorization, "Bearer ek_1");
});

test("the tool loop keeps to the budget of the turn's beginning", async (t) => {
  const { fake, engine } = await setup(t);
  const one = engine();
  for (const tokenBudget of [17_973, 32_725, 31_000, 20_000]) await one.assemble({ ...session, messages: [], tokenBudget });
  assert.deepEqual(
    fake.named("POST assemble").map((r) => r.body.tokenBudget),
    [17_408, 17_408, 15_360, 5_248],
  );
});

test("a host that gives the whole window keeps room for its own prompt", async (t) => {
  const { fake, engine } = await setup(t, {}, undefined, true);
  await engine().assemble({ ...session, messages: [], tokenBudget: 131_072 });
  await engine().assemble({ ...session, messages: [], tokenBudget: 32_768 });
  assert.deepEqual(fake.named("POST assemble").map((r) => r.body.tokenBudget), [90_112, 16_384]);
});

for (const [what, answer] of [
  ["hangs", "hang"],
  ["cuts the connection", "cut"],
  ["fails", problem(500, "internal")],
  ["is too busy", problem(503, "too-busy")],
  ["answers nonsense", { body: { messages: "no" } }],
  ["answers messages without a role", { body: { messages: [1, null] } }],
  ["refuses the key", problem(401, "unauthorized")],
] as const) {
  test(`a service that ${what} costs a window no more than its deadline: the host's messages serve`, async (t) => {
    const { fake, engine, service } = await setup(t, { deadlines: { assemble: 150 } });
    fake.on("POST assemble", answer as never);
    const result = await engine().assemble({ ...session, messages: history });
    assert.equal(result.messages, history);
    assert.ok(result.estimatedTokens > 0);
    assert.equal(service.note("agent:main:main").served?.by, "host");
  });
}

test("a service that cannot be reached: every call keeps its promise", async (t) => {
  const { fake, engine, delegated } = await setup(t, { deadlines: { assemble: 200, commit: 300, other: 200 } }, pages([]));
  fake.stop();
  const one = engine();
  assert.equal((await one.bootstrap(session)).bootstrapped, false);
  assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
  await assert.rejects(one.commitTurn(turn()), /does not answer/);
  await one.afterTurn({ ...session, messages: history, prePromptMessageCount: 0 });
  assert.deepEqual(await one.ingestBatch({ ...session, messages: history }), { ingestedCount: 0 });
  assert.deepEqual(await one.ingest({ ...session, message: history[0]! }), { ingested: false });
  assert.equal((await one.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } })).changed, false);
  assert.equal((await one.compact({ ...session, force: true })).reason, "by the host");
  assert.equal(delegated.length, 1);
  const preparation = await one.prepareSubagentSpawn({ parentSessionKey: "p", childSessionKey: "c" });
  await preparation.rollback();
  await one.onSubagentEnded({ childSessionKey: "c", reason: "completed" });
  await one.dispose();
});

test("a sub-agent whose parent the service does not know starts all the same, and there is nothing to take back", async (t) => {
  const { fake, engine } = await setup(t, {}, pages([]));
  fake.on("POST subagents", { status: 404, body: { type: "/problems/unknown-session", title: "Unknown session", status: 404 } });
  const preparation = await engine().prepareSubagentSpawn({ parentSessionKey: "p", childSessionKey: "c" });
  await preparation.rollback();
  assert.deepEqual(fake.names(), ["POST subagents"]);
});

test("while the service is away a turn probes once and waits no more, and a commit tries anyway", async (t) => {
  const { fake, engine } = await setup(t, { deadlines: { sync: 1_000, assemble: 1_000 } }, pages([]));
  fake.on("GET transcript", "hang").on("POST assemble", "hang");
  const one = engine();
  await one.bootstrap(session);
  await one.assemble({ ...session, messages: history });
  await one.assemble({ ...session, messages: history });
  assert.deepEqual(fake.names(), ["GET transcript"], "the breaker answers for the service");
  await one.commitTurn(turn());
  assert.deepEqual(fake.names(), ["GET transcript", "POST commit-turn"]);
  await one.assemble({ ...session, messages: history });
  assert.equal(fake.named("POST assemble").length, 1, "the commit closed the breaker");
  const next = engine();
  await next.bootstrap(session);
  assert.equal(fake.named("GET transcript").length, 2, "the next turn probes with its first call");
});

test("a turn loses no more than its limit, of which the commit's part is kept", async () => {
  let now = 0;
  const clock = new TurnClock(10_000, 5_000, () => now);
  assert.equal(clock.deadline(3_000), 3_000);
  await clock.measure(async () => void (now += 3_000));
  await Promise.all([clock.measure(async () => {}), clock.measure(async () => void (now += 1_500))]);
  assert.equal(clock.deadline(2_000), 500);
  assert.equal(clock.deadline(5_000, true), 5_000);
  await clock.measure(async () => void (now += 500));
  assert.equal(clock.deadline(2_000), 0);
  assert.equal(clock.deadline(5_000, true), 5_000);
  await clock.measure(async () => void (now += 5_000));
  assert.equal(clock.deadline(5_000, true), 0);
});

test("a turn that has no time left for it goes without a call", async (t) => {
  const { fake, engine } = await setup(t, { deadlines: { turn: 1, commit: 1 } }, pages([]));
  const one = engine();
  assert.equal((await one.bootstrap(session)).bootstrapped, false);
  assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
  assert.deepEqual(fake.names(), []);
});

test("a commit carries the turn and nothing secret", async (t) => {
  const { fake, engine } = await setup(t);
  assert.deepEqual(await engine().commitTurn(turn({ isHeartbeat: true })), { status: "committed" });
  const { body } = fake.named("POST commit-turn")[0]!;
  assert.deepEqual(body.messages, JSON.parse(JSON.stringify(history)));
  assert.equal(body.advancementKey, "turn-1");
  assert.equal(body.isHeartbeat, true);
  assert.deepEqual(body.admission, { entryId: "e1", logicalTurnId: "turn-1", role: "user" });
  assert.deepEqual(body.usage, { input: 10, output: 2, cacheRead: 5, cacheWrite: 0 });
  assert.deepEqual(body.runtimeContext, { provider: "mock", modelId: "m", tokenBudget: 32_768 });
  assert.ok(!JSON.stringify(body).includes("SECRET") && !JSON.stringify(body).includes("/secret"));
});

test("a commit names the budget that history really has", async (t) => {
  const { fake, engine } = await setup(t);
  const one = engine();
  await one.assemble({ ...session, messages: [], tokenBudget: 17_973 });
  await one.commitTurn(turn());
  assert.equal(fake.named("POST commit-turn")[0]!.body.tokenBudget, 17_408);
});

for (const [status, slug] of [[409, "session-erased"], [409, "idempotency-conflict"], [422, "validation"], [413, "too-large"]] as const) {
  test(`a commit that is refused for ever (${slug}) does not stick in the host's outbox`, async (t) => {
    const { fake, engine, lines } = await setup(t);
    fake.on("POST commit-turn", problem(status, slug));
    assert.deepEqual(await engine().commitTurn(turn()), { status: "duplicate" });
    assert.match(lines.error.join(), new RegExp(slug));
    assert.equal(fake.requests.length, 1);
  });
}

for (const [status, slug] of [[401, "unauthorized"], [429, "too-many"], [500, "internal"], [503, "unavailable"], [502, "engine-failed"]] as const) {
  test(`a commit that may succeed later (${status} ${slug}) is thrown, so that the host tries again`, async (t) => {
    const { fake, engine } = await setup(t, { deadlines: { commit: 400 } });
    fake.on("POST commit-turn", problem(status, slug));
    await assert.rejects(engine().commitTurn(turn()), new RegExp(slug));
  });
}

test("a commit is tried again within its deadline", async (t) => {
  const { fake, engine } = await setup(t);
  const answers = [problem(503, "unavailable"), "cut" as const, { body: { status: "duplicate", head: 2, epoch: 1 } }];
  fake.on("POST commit-turn", () => answers.shift()!);
  assert.deepEqual(await engine().commitTurn(turn()), { status: "duplicate" });
  assert.equal(fake.requests.length, 3);
});

test("Retry-After is heeded: no retry that comes too early or too late", async (t) => {
  const { fake, engine } = await setup(t, { deadlines: { assemble: 500 } });
  fake.on("POST assemble", problem(503, "unavailable", { "retry-after": "30" }));
  await engine().assemble({ ...session, messages: history });
  assert.equal(fake.requests.length, 1);
});

test("an abort cancels the request and is the host's again", async (t) => {
  const { fake, engine } = await setup(t);
  fake.on("POST assemble", "hang").on("POST compact", "hang");
  for (const call of ["assemble", "compact"] as const) {
    const abort = new AbortController();
    const gone = fake.aborted();
    const running = engine()[call]({ ...session, messages: history, abortSignal: abort.signal } as never);
    while (fake.named(`POST ${call}`).length === 0) await new Promise((r) => setImmediate(r));
    abort.abort(new Error("stopped by the user"));
    if (call === "assemble") await assert.rejects(running, /stopped by the user/);
    else assert.match(String((await (running as Promise<{ reason?: string }>)).reason), /aborted/);
    await gone;
  }
});

test("bootstrap sends the transcript page by page, with what the conversation does not need left out", async (t) => {
  const first = [
    { type: "session", id: "s-1", version: 4, timestamp: "t", cwd: "/home/secret" },
    { type: "custom", id: "c1", parentId: null, timestamp: "t", customType: "x", data: { token: "SECRET" } },
    { type: "message", id: "m1", parentId: "c1", timestamp: "t", message: user("one", 1) },
  ];
  const second = [{ type: "reset", id: "r1", parentId: "m1", timestamp: "t", reason: "new" }];
  const { fake, engine, service } = await setup(t, {}, pages(first, second));
  const result = await engine().bootstrap({ ...session, sessionTarget: { sessionId: "s-1", expectedLifecycleRevision: "rev-2" } });
  assert.deepEqual(result, { bootstrapped: true, importedMessages: 4, reason: undefined });
  const sent = fake.named("POST transcript").map((r) => r.body);
  assert.deepEqual(sent.map((b) => b.cursor), ["c1", "c2"]);
  assert.deepEqual(sent[0].entries[0], { type: "session", id: "s-1", timestamp: "t", version: 4 });
  assert.deepEqual(sent[0].entries[1], { type: "custom", id: "c1", parentId: null, timestamp: "t", customType: "x" });
  assert.deepEqual(sent[0].entries[2], first[2]);
  assert.deepEqual(sent[1].entries, second);
  assert.equal(sent[0].lifecycleRevision, "rev-2");
  assert.ok(!JSON.stringify(sent).includes("SECRET") && !JSON.stringify(sent).includes("/home"));
  assert.equal(service.note("agent:main:main").synced, true);
});

test("bootstrap goes on where the service's cursor is, and begins anew where it no longer fits", async (t) => {
  const { fake, engine } = await setup(t, {}, pages([{ type: "message", id: "a" }], [{ type: "message", id: "b" }]));
  fake.on("GET transcript", { body: { cursor: "c1" } });
  await engine().bootstrap(session);
  assert.deepEqual(fake.named("POST transcript").map((r) => r.body.entries[0].id), ["b"]);
  fake.on("GET transcript", { body: { cursor: "c99" } });
  fake.requests.length = 0;
  await engine().bootstrap(session);
  assert.deepEqual(fake.named("POST transcript").map((r) => r.body.entries[0].id), ["a", "b"]);
});

test("a sync that did not come to its end: the host's messages that the window lacks are shown behind it, once", async (t) => {
  const { fake, engine } = await setup(t, {}, pages([{ type: "message", id: "a" }]));
  fake.on("POST transcript", problem(422, "validation"));
  fake.on("POST assemble", { body: { messages: [user("of another gateway", 0), ...history], estimatedTokens: 3, head: 3, epoch: 1 } });
  const one = engine();
  await one.bootstrap(session);
  const added = [user("two", 3), assistant("second", 4)];
  const result = await one.assemble({ ...session, messages: [...history, ...added] });
  assert.deepEqual(result.messages.map((m) => m.timestamp), [0, 1, 2, 3, 4]);
});

test("a sync that did not come to its end and a window that has nothing of this host: the host's messages serve", async (t) => {
  const { fake, engine } = await setup(t, {}, pages([{ type: "message", id: "a" }]));
  fake.on("POST transcript", problem(422, "validation"));
  fake.on("POST assemble", { body: { messages: [user("from before a reset", 0)], estimatedTokens: 3, head: 3, epoch: 1 } });
  for (const messages of [history, []]) {
    const one = engine();
    await one.bootstrap(session);
    assert.equal((await one.assemble({ ...session, messages })).messages, messages);
  }
});

test("hosts without a fence: what could not be synced is shown in the tool loop too", async (t) => {
  const { fake, engine } = await setup(t, {}, pages([{ type: "message", id: "a" }]), true);
  fake.on("POST transcript", problem(422, "validation"));
  const one = engine();
  await one.bootstrap(session);
  const running = [...history, user("two", 3)];
  await one.afterTurn({ ...session, messages: running, prePromptMessageCount: 2 });
  assert.deepEqual((await one.assemble({ ...session, messages: running })).messages, running);
  fake.on("POST assemble", { body: { messages: history.slice(0, 1), estimatedTokens: 3, head: 2, epoch: 1 } });
  assert.deepEqual((await one.assemble({ ...session, messages: running })).messages, running);
});

test("a prompt that a retry's sync has brought already is not shown twice", async (t) => {
  const { fake, engine } = await setup(t);
  const one = engine();
  const now = user("go on", Date.now() + 1_000);
  fake.on("POST assemble", { body: { messages: [...history, now], estimatedTokens: 3, head: 3, epoch: 1 } });
  assert.deepEqual((await one.assemble({ ...session, messages: history, prompt: "go on" })).messages, history);
  assert.deepEqual((await one.assemble({ ...session, messages: history, prompt: "[Mon 10:02] go on" })).messages, history, "nor in the host's dress");
  assert.equal((await one.assemble({ ...session, messages: history, prompt: "something else" })).messages.length, 3);
  const old = { ...now, timestamp: 5 };
  fake.on("POST assemble", { body: { messages: [...history, old], estimatedTokens: 3, head: 3, epoch: 1 } });
  assert.equal((await one.assemble({ ...session, messages: history, prompt: "go on" })).messages.length, 3, "an older one is another message");
});

test("hosts without a fence: the running turn is a live tail, told whole at its end", async (t) => {
  const call = { role: "assistant", content: [{ type: "toolCall", id: "call_1", name: "exec", arguments: {} }], timestamp: 4, responseId: "r4" };
  const result = { role: "toolResult", toolCallId: "call1", content: [], timestamp: 5 };
  const running = [user("two", 3), call, result];
  const { fake, engine } = await setup(t, {}, pages([{ type: "message", id: "a", message: user("two", 3) }]), true);
  fake.on("POST assemble", { body: { messages: history, estimatedTokens: 3, head: 2, epoch: 1 } });
  const one = engine();
  await one.assemble({ ...session, messages: history, tokenBudget: 131_072 });
  await one.afterTurn({ ...session, messages: [...history, running[0]!], prePromptMessageCount: 2 });
  assert.deepEqual((await one.assemble({ ...session, messages: [...history, running[0]!] })).messages, [...history, running[0]]);
  await one.afterTurn({ ...session, messages: [...history, ...running], prePromptMessageCount: 3 });
  assert.deepEqual((await one.assemble({ ...session, messages: [...history, ...running] })).messages, [...history, ...running]);
  assert.equal(fake.named("POST transcript").length, 0);

  // What the service has of the turn, in its own form, is not doubled.
  fake.on("POST assemble", { body: { messages: [...history, running[0], { ...call, extra: 1 }], estimatedTokens: 3, head: 2, epoch: 1 } });
  assert.deepEqual((await one.assemble({ ...session, messages: [...history, ...running] })).messages.map((m) => m.timestamp), [1, 2, 3, 4, 5]);

  await one.afterTurn({ ...session, messages: [...history, ...running, assistant("done", 6)], prePromptMessageCount: 5, tokenBudget: 131_072 });
  assert.equal(fake.named("POST transcript").length, 1);
  const told = fake.named("POST after-turn");
  assert.equal(told.length, 1);
  assert.deepEqual(told[0]!.body.messages, []);
  assert.equal(told[0]!.body.usage.input, 10);
});

test("hosts without a fence: a heartbeat's turn is committed under its entries' ids, so that it is marked", async (t) => {
  const poll = user("poll", 3);
  const ok = assistant("HEARTBEAT_OK", 4);
  const entries = [{ type: "message", id: "a", message: history[0] }, { type: "model_change", id: "b" }, { type: "message", id: "c", message: poll }, { type: "message", id: "d", message: ok }];
  const { fake, engine } = await setup(t, {}, pages(entries.slice(0, 3), entries.slice(3)), true);
  await engine().afterTurn({ ...session, messages: [...history, poll, ok], prePromptMessageCount: 2, isHeartbeat: true });
  assert.deepEqual(fake.names(), ["POST commit-turn"]);
  const { body } = fake.requests[0]!;
  assert.equal(body.isHeartbeat, true);
  assert.deepEqual([body.admission.entryId, body.terminal.entryId, body.advancementKey], ["c", "d", "gw-test:s-1:d"]);
  assert.deepEqual(body.messages, [poll, ok]);

  // One that is not in the transcript yet comes with the next sync.
  await engine().afterTurn({ ...session, messages: [...history, poll, assistant("other", 9)], prePromptMessageCount: 2, isHeartbeat: true });
  assert.deepEqual(fake.names().slice(1), ["GET transcript", "POST transcript", "POST transcript", "POST after-turn"]);
});

test("hosts that show no transcript: the turn goes as messages, behind the host's fence", async (t) => {
  const { fake, engine } = await setup(t);
  await engine().afterTurn({ ...session, messages: [...history, user("two", 3), assistant("second", 4)], prePromptMessageCount: 2 });
  const { body } = fake.named("POST after-turn")[0]!;
  assert.equal(body.messages.length, 4);
  assert.equal(body.prePromptMessageCount, 2);
});

test("single messages carry keys: the same message is the same key, equal words without marks are not", async (t) => {
  const { fake, engine } = await setup(t);
  const bare = { role: "user", content: "yes" };
  await engine().ingestBatch({ ...session, messages: [...history, bare, bare] });
  await engine().ingest({ ...session, message: history[0]! });
  const [first, second] = fake.named("POST ingest-batch").map((r) => r.body.idempotencyKeys as string[]);
  assert.equal(new Set(first).size, 4);
  assert.equal(second![0], first![0]);
});

test("a compaction passes the focus on, aims at what history really has, and names no other session", async (t) => {
  const { fake, engine } = await setup(t);
  fake.on("POST compact", { body: { ok: true, compacted: true, epoch: 2, result: { summary: "s", firstKeptEntryId: "e", tokensBefore: 100, tokensAfter: 10, sessionId: "other" } } });
  const one = engine();
  await one.assemble({ ...session, messages: [], tokenBudget: 17_973 });
  const result = await one.compact({
    ...session, force: true, tokenBudget: 32_768, currentTokenCount: 40_000, compactionTarget: "budget", customInstructions: "apples",
    runtimeContext: { trigger: "overflow", sessionEntry: { token: "SECRET" }, config: {} },
  });
  assert.deepEqual(result, { ok: true, compacted: true, reason: undefined, result: { summary: "s", firstKeptEntryId: "e", tokensBefore: 100, tokensAfter: 10, details: undefined } });
  const { body } = fake.named("POST compact")[0]!;
  assert.equal(body.customInstructions, "apples");
  assert.equal(body.tokenBudget, Math.floor((17_408 * 32_768) / 40_000));
  assert.deepEqual(body.runtimeContext, { trigger: "overflow" });
  assert.equal(fake.named("GET transcript").length, 0, "within a turn the transcript is not read");
});

test("a manual compaction first brings what the service lacks", async (t) => {
  const { fake, engine } = await setup(t, {}, undefined);
  fake.on("POST compact", { body: { ok: true, compacted: false, reason: "nothing to compact", epoch: 1 } });
  const result = await engine().compact({ ...session, force: true, runtimeContext: { trigger: "manual" } });
  assert.deepEqual(result, { ok: true, compacted: false, reason: "nothing to compact" });
});

test("a compaction that the service refuses says why and is not handed to the host", async (t) => {
  const { fake, engine, delegated } = await setup(t);
  fake.on("POST compact", problem(422, "validation"));
  const result = await engine().compact({ ...session });
  assert.equal(result.ok, false);
  assert.match(result.reason!, /validation/);
  assert.equal(delegated.length, 0);
});

test("sub-agents are prepared, rolled back and ended", async (t) => {
  const { fake, engine } = await setup(t);
  fake.on("POST subagents", { body: { preparationId: "p" } });
  fake.on("POST subagents/agent%3Amain%3Asubagent%3A1/rollback", { body: {} });
  fake.on("POST subagents/agent%3Amain%3Asubagent%3A1/ended", { body: {} });
  const one = engine();
  const child = "agent:main:subagent:1";
  const preparation = await one.prepareSubagentSpawn({ parentSessionKey: session.sessionKey, childSessionKey: child, contextMode: "fork", ttlMs: 5 });
  await preparation.rollback();
  await one.onSubagentEnded({ childSessionKey: child, reason: "completed" });
  assert.equal(fake.requests.length, 3);
  assert.deepEqual(fake.requests[0]!.body, { childSessionKey: child, contextMode: "fork", ttlMs: 5, gatewayId: "gw-test" });
  assert.deepEqual(fake.requests[2]!.body, { reason: "completed" });
});

test("the service is away and the host's messages do not fit: its last window and what came since", async (t) => {
  const { fake, engine } = await setup(t, { deadlines: { assemble: 1_000 } });
  const long = Array.from({ length: 40 }, (_, i) => user(`${i} ${"word ".repeat(600)}`, i));
  const window = [{ role: "compactionSummary", summary: "what was said", timestamp: 30 }, ...long.slice(34, 38)];
  fake.on("POST assemble", { body: { messages: window, estimatedTokens: 5_000, head: 38, epoch: 2 } });
  const ask = (over = {}) => engine().assemble({ ...session, messages: long, tokenBudget: 16_384, ...over });
  await ask();
  fake.on("POST assemble", problem(500, "internal"));
  assert.deepEqual((await ask()).messages, [...window, ...long.slice(38)]);
  assert.equal((await ask({ tokenBudget: 131_072 })).messages, long, "they fit: the host's own");
  assert.equal((await ask({ tokenBudget: 4_096 })).messages, long, "neither fits: the host knows what to do");
  assert.equal((await ask({ sessionId: "s-2" })).messages, long, "another host session may be a rewound one");
  const other = [user(`new ${"word ".repeat(20_000)}`, 99)];
  assert.equal((await ask({ messages: other })).messages, other, "nothing in common");
  fake.on("POST compact", problem(500, "internal"));
  await engine().compact({ ...session, force: true });
  assert.equal((await ask()).messages, long, "compacted by the host");
});
