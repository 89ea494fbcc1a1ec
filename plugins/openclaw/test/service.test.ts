import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Breaker } from "../src/breaker.ts";
import { readConfig, defaults } from "../src/config.ts";
import { configChecks, doctor, isOlderHost, routesCalled } from "../src/doctor.ts";
import { Engine } from "../src/engine.ts";
import { registerHooks } from "../src/hooks.ts";
import type { PluginApi, SessionEvent } from "../src/host.ts";
import { keptGatewayId, stateDir } from "../src/identity.ts";
import { behind, missing } from "../src/livetail.ts";
import register from "../src/index.ts";
import { status } from "../src/command.ts";
import { sharedService } from "../src/service.ts";
import { tools, toolNames } from "../src/tools.ts";
import { version } from "../src/version.ts";
import { assistant, Fake, problem, serviceFor, user } from "./fake.ts";

const folder = () => mkdtempSync(join(tmpdir(), "engined-plugin-"));
const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"));

function api(over: Partial<PluginApi> = {}): PluginApi & { hooks: Map<string, (e: SessionEvent, c: SessionEvent) => unknown>; engines: Map<string, (ctx: unknown) => unknown>; named: string[] } {
  const hooks = new Map();
  const engines = new Map();
  const named: string[] = [];
  return {
    logger: { info() {}, warn() {}, error() {} },
    registerContextEngine: (id, factory) => engines.set(id, factory),
    registerTool: (_factory, options) => void named.push(...options.names),
    registerCommand: (command) => void named.push(`/${command.name}`),
    on: (name, handler) => hooks.set(name, handler),
    ...over,
    hooks,
    engines,
    named,
  };
}

test("versions and names agree in all manifests", () => {
  assert.equal(read("package.json").version, version);
  assert.equal(read("openclaw.plugin.json").version, version);
  assert.equal(read("openclaw.plugin.json").id, "engined");
  assert.deepEqual(read("openclaw.plugin.json").contracts.tools, toolNames);
  assert.equal(read("package.json").dependencies, undefined);
});

test("every setting is in the manifest's schema", () => {
  const { properties } = read("openclaw.plugin.json").configSchema;
  assert.deepEqual(Object.keys(properties).sort(), [...Object.keys(defaults), "apiKey", "gatewayId"].sort());
  assert.deepEqual(Object.keys(properties.deadlines.properties).sort(), Object.keys(defaults.deadlines).sort());
});

test("bad settings are said and replaced", () => {
  const said: string[] = [];
  const config = readConfig({ baseUrl: "nonsense", apiKey: 5, reserveTokens: -1, toolScope: "all", deadlines: { assemble: "soon", commit: 7 } }, (l) => said.push(l));
  assert.equal(config.baseUrl, defaults.baseUrl);
  assert.equal(config.apiKey, undefined);
  assert.equal(config.deadlines.assemble, 2_000);
  assert.equal(config.deadlines.commit, 7);
  assert.equal(said.length, 5);
  assert.ok(!said.join().includes("5 "), "values are not repeated: one may be a secret");
});

test("registering again, in any mode, registers the same and shares one service", () => {
  const dir = folder();
  const one = api({ pluginConfig: { baseUrl: "http://127.0.0.1:1" }, runtime: { version: "2026.9.6", state: { resolveStateDir: () => dir } } });
  register(one);
  register(one);
  assert.deepEqual([...one.engines.keys()], ["engined"]);
  assert.deepEqual([...new Set(one.named)], [...toolNames, "/engined"]);
  const engine = one.engines.get("engined")!({}) as Engine;
  assert.equal(engine.info.id, "engined");
  assert.notEqual(one.engines.get("engined")!({}), engine, "an instance per turn");
  const config = readConfig({ baseUrl: "http://127.0.0.1:1" }, () => {});
  assert.equal(sharedService(config, stateDir(one), one.logger), sharedService(config, stateDir(one), one.logger));
});

test("the gateway's id is random, kept, and the first of two wins", () => {
  const dir = join(folder(), "state", "engined");
  const id = keptGatewayId(dir);
  assert.match(id, /^gw-[0-9a-f-]{36}$/);
  assert.equal(keptGatewayId(dir), id);
  assert.notEqual(keptGatewayId(join(folder(), "x")), id);
  assert.equal(stateDir({ runtime: undefined }, { OPENCLAW_STATE_DIR: "/s" }), "/s/engined");
});

test("without a writable state directory the gateway still has an id", () => {
  const file = join(folder(), "file");
  writeFileSync(file, "");
  const { service, lines } = serviceFor("http://127.0.0.1:1", { gatewayId: "" }, join(file, "x"));
  assert.match(service.gatewayId, /^gw-/);
  assert.match(lines.warn.join(), /gatewayId/);
});

test("hooks: reset and new reset at once, deleted erases, the rest changes nothing", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url);
  const one = api();
  registerHooks(one, service);
  const end = (reason: string) => one.hooks.get("session_end")!({ sessionId: "s", sessionKey: "agent:main:k", reason, nextSessionId: "n" }, {});
  for (const reason of ["idle", "daily", "compaction", "shutdown", "restart", "unknown"]) await end(reason);
  assert.deepEqual(fake.names(), []);
  await end("new");
  await end("reset");
  await end("deleted");
  assert.deepEqual(fake.names(), ["POST reset", "POST reset", "DELETE session"]);
  assert.deepEqual(fake.requests[0]!.body, { sessionId: "s", nextSessionId: "n", reason: "new", gatewayId: "gw-test" });
});

test("a reset that could not be told hides the old conversation until it is, also after a restart", async (t) => {
  const fake = await new Fake().start(t);
  const dir = folder();
  const { service } = serviceFor(fake.url, {}, dir);
  const one = api();
  registerHooks(one, service);
  fake.on("POST reset", problem(503, "unavailable"));
  fake.on("POST assemble", { body: { messages: [user("old secret", 1)], estimatedTokens: 1, head: 1, epoch: 1 } });
  await one.hooks.get("session_end")!({ sessionId: "s", sessionKey: "k", reason: "reset" }, {});
  const restarted = serviceFor(fake.url, {}, dir).service;
  for (const from of [service, restarted]) {
    const result = await new Engine(from, false).assemble({ sessionId: "s", sessionKey: "k", messages: [] });
    assert.deepEqual(result.messages, []);
  }
  fake.on("POST reset", { body: { head: 2, epoch: 2 } }).on("POST assemble", { body: { messages: [], estimatedTokens: 0, head: 2, epoch: 2 } });
  fake.requests.length = 0;
  await new Engine(restarted, false).assemble({ sessionId: "s", sessionKey: "k", messages: [] });
  assert.deepEqual(fake.names(), ["POST reset", "POST assemble"]);
  assert.ok(!existsSync(join(dir, "pending.json")));
});

test("a key that may not erase: the deleted conversation is hidden, and its key is served again", async (t) => {
  const fake = await new Fake().start(t);
  const { service, lines } = serviceFor(fake.url);
  fake.on("DELETE session", problem(403, "forbidden"));
  await service.step("k", { kind: "erase", sessionId: "s" });
  assert.deepEqual(fake.names(), ["DELETE session", "POST reset"]);
  assert.equal(fake.named("POST reset")[0]!.body.reason, "deleted");
  assert.equal(service.pending.get("k"), undefined);
  assert.match(lines.error.join(), /hidden, not erased/);
  assert.deepEqual(service.troubles.list(), []);
});

test("a reset of a session that the service does not know owes nothing", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url);
  fake.on("POST reset", problem(404, "unknown-session"));
  await service.step("k", { kind: "reset", sessionId: "s" });
  assert.equal(service.pending.get("k"), undefined);
});

test("the breaker opens for longer each time, closes with a success, and lets probes through", () => {
  let now = 0;
  const breaker = new Breaker(() => now, () => 1);
  assert.ok(breaker.allows(false));
  breaker.failed("a");
  assert.ok(!breaker.allows(false) && breaker.allows(true));
  now = 1_000;
  assert.ok(breaker.allows(false));
  breaker.failed("b");
  now = 2_500;
  assert.ok(!breaker.allows(false), "two seconds the second time");
  for (let i = 0; i < 40; i++) breaker.failed("c");
  now += 30_001;
  assert.ok(breaker.allows(false), "never more than half a minute");
  breaker.succeeded();
  assert.equal(breaker.state.open, false);
});

test("messages are known again in the host's other form", () => {
  const result = { role: "toolResult", toolCallId: "call_1", content: [], timestamp: 3 };
  assert.deepEqual(missing([user("a", 1), { ...result, toolCallId: "call1" }], [user("changed", 1), result, user("b", 4)]), [user("b", 4)]);
  assert.deepEqual(missing([user("yes", 1)], [user("yes", 2)]), [user("yes", 2)], "equal words are not the same message");
  assert.deepEqual(behind([user("a", 1), assistant("b", 2)], [user("a", 1), assistant("b", 2), user("c", 3)]), [user("c", 3)]);
  assert.equal(behind([user("a", 1)], [user("z", 9)]), undefined);
  assert.deepEqual(missing([{ role: "user", content: "x" }], [{ role: "user", content: "x" }]), [], "without any mark: by its words");
});

test("tools: search, describe, expand, scoped to the session", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url);
  const [grep, describe, expand] = tools(service, "agent:main:k");
  fake.on("GET search", { body: { hits: [{ sessionKey: "agent:main:k", seq: 7, role: "user", snippet: "an [apple]" }] } });
  const text = async (tool: typeof grep, params: Record<string, unknown>) => (await tool!.execute("id", params)).content[0]!.text;
  assert.match(await text(grep, { query: "apple", allSessions: true }), /#7 user: an \[apple\]/);
  assert.equal(fake.named("GET search")[0]!.query.get("sessionKey"), "agent:main:k", "wider only where it is allowed");
  fake.on("GET summaries", { body: { summaries: [{ id: 4, live: true, level: 1, sourceTokens: 900, tokens: 90, text: "They spoke of apples", covers: [] }, { id: 2, live: false, text: "" }] } });
  assert.match(await text(describe, {}), /summary 4, level 1/);
  fake.on("GET summaries/4", { body: { id: 4, live: true, level: 1, sourceTokens: 900, tokens: 90, text: "They spoke of apples", covers: [{ from: 1, to: 2 }] } });
  assert.match(await text(describe, { id: 4 }), /They spoke of apples/);
  fake.on("GET summaries/4/sources", { body: { sources: [{ kind: "event", seq: 1 }, { kind: "event", seq: 3 }, { kind: "event", seq: 9 }] } });
  const said = "y".repeat(9_000);
  fake.on("GET events", (r) => {
    const after = Number(r.query.get("after"));
    const all = [1, 2, 3, 9].filter((seq) => seq > after).slice(0, 3);
    return { body: { events: all.map((seq) => ({ seq, role: "user", type: "message.appended", message: { role: "user", content: seq === 2 ? "not covered" : `m${seq} ${said}` } })) } };
  });
  const first = await text(expand, { id: 4 });
  assert.match(first, /#1 user: m1/);
  assert.match(first, /#3 user: m3/);
  assert.ok(!first.includes("not covered") && !first.includes("#9"));
  assert.match(first, /after 3$/);
  assert.match(await text(expand, { id: 4, after: 3 }), /#9 user: m9/);
  assert.match(await text(expand, { id: 5 }), /no such summary/);
  fake.stop();
  assert.match(await text(grep, { query: "x" }), /not possible now/);
});

test("tools may search wider where the settings allow it", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url, { toolScope: "tenant" });
  fake.on("GET search", { body: { hits: [] } });
  const grep = tools(service, "k")[0]!;
  await grep.execute("id", { query: "x" });
  await grep.execute("id", { query: "x", allSessions: true });
  assert.deepEqual(fake.requests.map((r) => r.query.get("sessionKey")), ["k", null]);
});

test("the status says whether the session is really served", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url);
  fake.on("GET session", { body: { head: 4, epoch: 2, tokens: 100, debt: 50, compactions: 1 } });
  fake.on("POST assemble", { body: { messages: [user("a", 1)], estimatedTokens: 9, head: 4, epoch: 2 } });
  const ctx = { sessionKey: "agent:main:k", sessionId: "s" };
  await new Engine(service, false).assemble({ ...ctx, messages: [] });
  assert.match(await status(service, ctx), /^✓ served by engined .* epoch 2\n.*head 4, epoch 2\n.*100 tokens, 1 compaction, compaction owed \(50 tokens\)/);
  fake.stop();
  await new Engine(service, false).assemble({ ...ctx, messages: [] });
  assert.match(await status(service, ctx), /NOT served by engined/);
});

test("doctor names why a host would not use the engine", async (t) => {
  const bad = configChecks({ plugins: { enabled: false, allow: ["x"], deny: ["engined"], slots: {}, entries: { engined: { enabled: false } } } });
  assert.equal(bad.filter((c) => !c.ok).length, 5);
  assert.ok(configChecks({ plugins: { allow: ["engined"], slots: { contextEngine: "engined" } } }).every((c) => c.ok));
  assert.deepEqual(["2026.6.11", "2026.9.6", "2027.1.0", "2025.12.1", undefined].map(isOlderHost), [true, false, false, true, false]);
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url);
  fake.on("GET engines", { body: { engines: [{ id: "lossless", quarantine: { reason: "x" } }] } });
  const found = await doctor(api({ runtime: { version: "2026.6.11" } }), service, { plugins: { slots: { contextEngine: "engined" } } });
  assert.deepEqual(found.filter((c) => !c.ok).map((c) => c.fix?.split(":")[0]), ["engined engines clear lossless", "start it, or correct baseUrl"]);
});

test("doctor tells a key that may not write, and a node that is too old", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url, { apiKey: "k" });
  const ended = "POST subagents/engined%3Adoctor/ended";
  const bad = async () => (await doctor(api({ runtime: { version: "2026.6.11" } }), service, { plugins: { slots: { contextEngine: "engined" } } })).filter((c) => !c.ok);
  fake.on("GET engines", problem(401, "unauthenticated"));
  assert.match((await bad())[0]!.fix!, /valid key/);
  fake.on("GET engines", { body: { engines: [] } }).on(ended, problem(403, "forbidden"));
  assert.match((await bad())[0]!.fix!, /scope gateway/);
  fake.on(ended, { body: { ended: false } });
  assert.deepEqual(await bad(), [], "a node that shows no API document is not blamed");
  const document = JSON.parse(readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"));
  fake.on("GET /openapi.json", { body: document });
  assert.deepEqual(await bad(), []);
  delete document.paths["/v1/sessions/{key}/transcript"].post;
  assert.deepEqual((await bad()).map((c) => c.text), ["the node is older than this plugin and lacks POST /v1/sessions/{key}/transcript"]);
});

test("doctor compares every route that the plugin calls", () => {
  const source = readdirSync(new URL("../src/", import.meta.url)).filter((f) => !["doctor.ts", "api.gen.ts"].includes(f));
  const called = new Set<string>();
  for (const file of [...source, "doctor.ts"]) {
    const text = readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
    for (const [, route] of text.matchAll(/\.call\("([A-Z]+ [^"]+)"/g)) called.add(route!);
  }
  assert.deepEqual([...routesCalled], [...called].sort());
});
