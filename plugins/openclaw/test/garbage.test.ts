// A service that answers, but not what a node says.

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Engine } from "../src/engine.ts";
import type { Page, Reader } from "../src/transcript.ts";
import { assistant, Fake, hostSeams, pages, problem, serviceFor, user } from "./fake.ts";

const session = { sessionId: "s-1", sessionKey: "agent:main:main" };
const history = [user("one", 1), assistant("first", 2)];
const entries: Reader = pages([{ type: "message", id: "a", message: history[0] }]);

const answers: Record<string, (res: ServerResponse) => void> = {
  "an error page": (res) => res.writeHead(500, { "content-type": "text/html" }).end("<html>Internal Server Error</html>"),
  "a page of another program": (res) => res.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>It works!</title>"),
  "half of its JSON": (res) => res.writeHead(200).end('{"messages":[{"role":"user","con'),
  "a part of what it announced": (res) => {
    res.writeHead(200, { "content-length": "1000" });
    res.write('{"messages":');
    setImmediate(() => res.destroy());
  },
  "a list": (res) => res.writeHead(200).end("[]"),
  "null": (res) => res.writeHead(200).end("null"),
  "an empty object": (res) => res.writeHead(200).end("{}"),
  "binary noise": (res) => res.writeHead(200).end(Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 197) % 256))),
  "other types than it should": (res) => res.writeHead(200).end('{"messages":{"0":1},"estimatedTokens":"many","status":5,"ok":"yes","cursor":7,"ingestedCount":"x"}'),
  "a redirect": (res) => res.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  "nothing": (res) => res.writeHead(204).end(),
};

async function server(t: TestContext, answer: (res: ServerResponse) => void): Promise<string> {
  const s = createServer((req, res) => {
    req.resume();
    req.on("end", () => answer(res));
  });
  await new Promise<void>((r) => s.listen(0, "127.0.0.1", r));
  t.after(() => {
    s.closeAllConnections();
    s.close();
  });
  return `http://127.0.0.1:${(s.address() as AddressInfo).port}`;
}

for (const [what, answer] of Object.entries(answers)) {
  test(`a service that answers ${what}: no call hurts the host, and nothing counts as stored`, async (t) => {
    const { service } = serviceFor(await server(t, answer), { deadlines: { assemble: 400, sync: 400, commit: 400, other: 400, maintain: 400 } });
    let delegated = 0;
    const one = new Engine(service, false, hostSeams(entries, {
      compact: async () => (delegated++, { ok: true, compacted: true, reason: "by the host" }),
    }));
    await one.bootstrap(session);
    assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
    const commit = { ...session, advancementKey: "t", admission: {}, terminal: {}, messages: history };
    await assert.rejects(one.commitTurn(commit), "the host's outbox keeps the turn");
    await one.afterTurn({ ...session, messages: history, prePromptMessageCount: 0 });
    assert.notEqual(service.note(session.sessionKey).committed?.status, "committed");
    assert.equal((await one.compact({ ...session, force: true })).reason, "by the host");
    assert.equal(delegated, 1);
    await one.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } });
    await (await one.prepareSubagentSpawn({ parentSessionKey: "p", childSessionKey: "c" })).rollback();
    await one.onSubagentEnded({ childSessionKey: "c", reason: "completed" });
  });
}

test("an answer that drips is given up at the deadline", async (t) => {
  const url = await server(t, (res) => {
    res.writeHead(200);
    const drip = setInterval(() => res.write(" "), 20);
    res.on("close", () => clearInterval(drip));
  });
  const { service } = serviceFor(url, { deadlines: { assemble: 300 } });
  const one = new Engine(service, false, hostSeams());
  assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
  assert.match(service.note(session.sessionKey).served!.why!, /no answer within 300 ms/);
});

test("an answer without end is given up, once, before it fills the memory", async (t) => {
  let asked = 0;
  let sent = 0;
  const chunk = Buffer.alloc(1 << 20, 32);
  const url = await server(t, (res) => {
    asked++;
    res.writeHead(200);
    const pump = (): void => {
      while (!res.destroyed && res.write(chunk)) sent += chunk.length;
      if (!res.destroyed) res.once("drain", pump);
    };
    pump();
  });
  const { service } = serviceFor(url, { deadlines: { assemble: 50_000, turn: 60_000 } });
  const one = new Engine(service, false, hostSeams());
  assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
  assert.match(service.note(session.sessionKey).served!.why!, /longer than/);
  assert.equal(asked, 1);
  assert.ok(sent < 128 << 20);
});

test("a retry that runs out of time does not hide the answer that it was a retry of", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url, { deadlines: { commit: 400 } });
  const given = [problem(503, "too-busy"), "hang" as const];
  fake.on("POST commit-turn", () => given.shift() ?? "hang");
  const one = new Engine(service, false, hostSeams());
  await assert.rejects(one.commitTurn({ ...session, advancementKey: "t", admission: {}, terminal: {}, messages: history }), /too-busy/);
});

test("an entry that is refused is sent without its content, and what is around it goes whole", async (t) => {
  const fake = await new Fake().start(t);
  const { service, lines } = serviceFor(fake.url);
  const all = Array.from({ length: 40 }, (_, i) => ({ type: "message", id: `e${i}`, parentId: i ? `e${i - 1}` : null, timestamp: "t", message: user(i === 23 ? "TOO LARGE" : `m${i}`, i) }));
  const reader: Reader = {
    async read(cursor, { events }): Promise<Page> {
      const from = Number(cursor ?? 0);
      const entries = all.slice(from, from + events);
      return { entries, cursor: String(from + entries.length), more: from + entries.length < all.length };
    },
  };
  const kept: any[] = [];
  fake.on("POST transcript", (r) => {
    if (JSON.stringify(r.body.entries).includes("TOO LARGE")) return problem(413, "too-large");
    kept.push(...r.body.entries);
    return { body: { stored: r.body.entries.length, cursor: r.body.cursor } };
  });
  const one = new Engine(service, false, hostSeams(reader));
  const result = await one.bootstrap(session);
  assert.deepEqual(result, { bootstrapped: true, importedMessages: 40, reason: undefined });
  assert.deepEqual(kept.map((e) => e.id), all.map((e) => e.id));
  assert.deepEqual(kept[23], { type: "custom", id: "e23", parentId: "e22", timestamp: "t", customType: "engined.refused" });
  assert.deepEqual(kept[24], all[24]);
  assert.match(lines.error.join(), /entry e23 .* refused/);
});
