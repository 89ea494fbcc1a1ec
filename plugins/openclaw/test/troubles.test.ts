import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "../src/command.ts";
import { Engine } from "../src/engine.ts";
import { Troubles } from "../src/troubles.ts";
import { assistant, Fake, hostSeams, pages, problem, serviceFor, user } from "./fake.ts";

const session = { sessionId: "s-1", sessionKey: "agent:main:main" };
const history = [user("one", 1), assistant("first", 2)];

test("a trouble is said when it begins, once an hour while it goes on, and when it is over", () => {
  let now = 0;
  const said: string[] = [];
  const log = { info: (l: string) => void said.push(l), warn: (l: string) => void said.push(l), error: (l: string) => void said.push(l) };
  const troubles = new Troubles(log, () => now);
  const took = () => said.splice(0).map((l) => l.replace("engined: ", ""));
  troubles.end("a", "never begun");
  troubles.begin("a", "bad");
  for (; now < 3_599_999; now += 600_000) troubles.begin("a", "bad, in other words");
  assert.deepEqual(took(), ["bad"]);
  assert.deepEqual(troubles.list(), [{ why: "bad, in other words", since: 0 }]);
  troubles.begin("a", "still bad");
  assert.deepEqual(took(), ["still bad"]);
  troubles.end("a", "well");
  troubles.end("a", "well");
  assert.deepEqual(took(), ["well"]);
  assert.deepEqual(troubles.list(), []);
  // What comes and goes is not said each time.
  for (let i = 0; i < 6; i++) {
    now += 9_000;
    troubles.begin("a", "bad");
    troubles.end("a", "well");
  }
  assert.deepEqual(took(), []);
  now += 9_000;
  troubles.begin("a", "bad");
  assert.deepEqual(took(), ["bad"]);
  troubles.begin("b", "of a session", "k");
  assert.deepEqual(troubles.list().map((t) => t.why), ["bad"]);
  troubles.forget("k");
  troubles.begin("b", "of a session", "k");
  assert.deepEqual(took(), ["of a session", "of a session"]);
});

test("a key that the node does not take: turns are answered, it is said once, and the status shows it", async (t) => {
  const fake = await new Fake().start(t);
  const { service, lines } = serviceFor(fake.url, { apiKey: "ek_wrong" });
  for (const call of ["GET transcript", "POST assemble", "POST commit-turn", "GET session"]) fake.on(call, problem(401, "unauthenticated"));
  const seams = hostSeams(pages([{ type: "message", id: "a" }]));
  for (let i = 0; i < 3; i++) {
    const one = new Engine(service, false, seams);
    await one.bootstrap(session);
    assert.equal((await one.assemble({ ...session, messages: history })).messages, history);
    await assert.rejects(one.commitTurn({ ...session, advancementKey: `t${i}`, admission: {}, terminal: {}, messages: history }), /401/);
  }
  assert.equal(lines.warn.filter((l) => l.includes("API key")).length, 1, lines.warn.join("\n"));
  const shown = await status(service, session);
  assert.match(shown, /^✗ NOT served by engined: the node has not taken the newest turn/);
  assert.match(shown, /^! the node at .* does not take the API key/m);

  for (const call of ["GET transcript", "POST assemble", "POST commit-turn"]) fake.handlers.delete(call);
  const one = new Engine(service, false, seams);
  await one.bootstrap(session);
  assert.match(lines.info.join("\n"), /takes the API key/);
});

test("a key whose scope does not reach: what it may not do is said, once for each call", async (t) => {
  const fake = await new Fake().start(t);
  const { service, lines } = serviceFor(fake.url, { apiKey: "ek_analyst" });
  for (const call of ["POST transcript", "POST commit-turn"]) fake.on(call, problem(403, "forbidden"));
  const seams = hostSeams(pages([{ type: "message", id: "a" }]));
  for (let i = 0; i < 3; i++) {
    const one = new Engine(service, false, seams);
    await one.bootstrap(session);
    await one.assemble({ ...session, messages: history });
    await assert.rejects(one.commitTurn({ ...session, advancementKey: `t${i}`, admission: {}, terminal: {}, messages: history }), /403/);
  }
  assert.equal(lines.warn.filter((l) => l.includes("needs the scope gateway")).length, 2, lines.warn.join("\n"));
});
