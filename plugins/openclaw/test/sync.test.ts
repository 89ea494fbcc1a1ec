// Long transcripts: what does not fit a turn's time follows after it.

import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Engine } from "../src/engine.ts";
import type { RawDelta } from "../src/host.ts";
import type { Page, Reader } from "../src/transcript.ts";
import { openTranscript } from "../src/transcript.ts";
import { fileReader } from "../src/transcriptfile.ts";
import { assistant, Fake, hostSeams, serviceFor, user } from "./fake.ts";

const session = { sessionId: "s-1", sessionKey: "agent:main:main" };
const background = { ...session, runtimeContext: { allowDeferredCompactionExecution: true } };
const limits = { events: 500, bytes: 4 << 20 };

/** A transcript of `n` entries, read as a host's. */
function long(n: number): Reader {
  return {
    async read(cursor, { events }): Promise<Page> {
      const from = Number(cursor ?? 0);
      const end = Math.min(n, from + events);
      const entries = Array.from({ length: end - from }, (_, i) => ({ type: "message", id: `e${from + i}` }));
      return { entries, cursor: String(end), more: end < n };
    },
  };
}

test("a transcript that does not fit a turn's time goes on after the turn and with the next ones, each entry once", async (t) => {
  const fake = await new Fake().start(t);
  const { service, lines } = serviceFor(fake.url);
  let cursor: string | null = null;
  let now = 0;
  const ids: string[] = [];
  fake.on("GET transcript", () => ({ body: { cursor } }));
  fake.on("POST transcript", (r) => {
    now += 1_200;
    ids.push(...r.body.entries.map((e: { id: string }) => e.id));
    cursor = r.body.cursor;
    return { body: { stored: r.body.entries.length, cursor } };
  });
  const seams = hostSeams(long(3_200), { now: () => now });
  const own = [user("one", 1), assistant("first", 2)];
  let turns = 0;
  for (; service.note(session.sessionKey).synced !== true && turns < 10; turns++) {
    const one = new Engine(service, false, seams);
    const { bootstrapped } = await one.bootstrap(session);
    const { messages } = await one.assemble({ ...session, messages: own });
    if (!bootstrapped) {
      assert.equal(messages, own, "meanwhile the host's messages serve");
      assert.equal((await one.compact({ ...session, force: true, runtimeContext: { trigger: "overflow" } })).reason, "by the host");
    }
    await one.maintain(background);
  }
  assert.ok(turns > 1, "it did not fit one turn");
  assert.deepEqual(ids, Array.from({ length: 3_200 }, (_, i) => `e${i}`));
  assert.equal(lines.warn.filter((l) => l.includes("the transcript is long") && !l.includes("compaction of")).length, 2, "said once, as sync and as window");
  fake.requests.length = 0;
  await new Engine(service, false, seams).maintain(background);
  assert.deepEqual(fake.names(), ["POST maintain"], "what is complete is not read again");
});

test("a page that did not get through in its time is made smaller", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url, { deadlines: { sync: 400 } });
  const sizes: number[] = [];
  fake.on("POST transcript", (r) => {
    sizes.push(r.body.entries.length);
    return r.body.entries.length > 100 ? "hang" : { body: { stored: r.body.entries.length } };
  });
  const seams = hostSeams(long(700));
  for (let i = 0; i < 4; i++) await new Engine(service, false, seams).bootstrap(session);
  assert.deepEqual(sizes.slice(0, 4), [500, 250, 125, 63]);
});

test("the time that a turn waited for the maintenance before it counts as its own", async (t) => {
  const fake = await new Fake().start(t);
  const { service } = serviceFor(fake.url, { deadlines: { turn: 6_000, commit: 5_000 } });
  const one = new Engine(service, false, hostSeams());
  service.note(session.sessionKey).maintained = Date.now() + 5_000;
  const own = [user("one", 1)];
  assert.equal((await one.assemble({ ...session, messages: own })).messages, own);
  assert.match(service.note(session.sessionKey).served!.why!, /no time is left/);
  assert.deepEqual(fake.names(), []);
});

test("a host's page that is too small for one entry is read as large as the host says", async () => {
  const asked: unknown[] = [];
  const read = async (p: Record<string, unknown>): Promise<RawDelta> => {
    asked.push([p.maxEvents, p.maxBytes]);
    if ((p.maxBytes as number) < 9_000_000) return { kind: "page", cursor: "same", hasMore: true, events: [], requiredBytes: 9_000_000 };
    return { kind: "page", cursor: "next", hasMore: false, events: [{ seq: 1, event: { id: "big" } }] };
  };
  const params = { ...session, sessionTarget: { ...session, agentId: "main" } };
  const reader = (await openTranscript(params, async () => ({ readSessionTranscriptRawDelta: read })))!;
  assert.deepEqual(await reader.read("same", limits), { entries: [{ id: "big" }], cursor: "next", more: false });
  assert.deepEqual(asked, [[500, 4 << 20], [1, 9_000_000]]);
  const stuck = (await openTranscript(params, async () => ({
    readSessionTranscriptRawDelta: async () => ({ kind: "page", cursor: "same", hasMore: true, events: [] }),
  })))!;
  assert.equal(await stuck.read("same", limits), "later", "a page that does not move on is no page");
});

const folder = () => mkdtempSync(join(tmpdir(), "engined-plugin-"));
const line = (id: string) => JSON.stringify({ type: "message", id }) + "\n";
const ids = (page: Page | string) => (page as Page).entries.map((e) => (e as { id: string }).id);

test("a transcript file is read in pages, goes on at its cursor, and starts over where it was rewritten", async () => {
  const path = join(folder(), "s.jsonl");
  writeFileSync(path, Array.from({ length: 600 }, (_, i) => line(`e${i}`)).join("") + '{"type":"mess');
  const reader = fileReader(path);
  const first = (await reader.read(null, limits)) as Page;
  assert.deepEqual([first.entries.length, first.more, ids(first).at(-1)], [500, true, "e499"]);
  const second = (await reader.read(first.cursor, limits)) as Page;
  assert.deepEqual([second.entries.length, second.more, ids(second)[0], ids(second).at(-1)], [100, false, "e500", "e599"]);
  const up = (await reader.read(second.cursor, limits)) as Page;
  assert.deepEqual(up, { entries: [], cursor: second.cursor, more: false });
  // The line that was being written is read once it is whole.
  appendFileSync(path, 'age","id":"late"}\n' + line("later"));
  assert.deepEqual(ids(await reader.read(second.cursor, limits)), ["late", "later"]);
  // The host mends an entry in its place: the ones that were read stay read.
  const mended = Array.from({ length: 600 }, (_, i) => (i === 3 ? line("e3").replace("message", "mended-message") : line(`e${i}`))).join("");
  writeFileSync(path, mended + line("late"));
  assert.deepEqual(ids(await reader.read(second.cursor, limits)), ["late"]);
  assert.deepEqual(ids(await reader.read("jsonl:600:e599", limits)), ["late"], "a cursor as an earlier version of this plugin wrote it");
  writeFileSync(path, line("x"));
  assert.equal(await reader.read(second.cursor, limits), "restart");
  writeFileSync(path, Array.from({ length: 700 }, (_, i) => line(`n${i}`)).join(""));
  assert.equal(await reader.read(second.cursor, limits), "restart", "longer, but another file");
  assert.equal(await reader.read("of another kind", limits), "restart");
  assert.equal(await fileReader(`${path}.none`).read(null, limits), "later");
});

test("a transcript file: the record behind a torn line or a block of NULs is kept", async () => {
  const path = join(folder(), "s.jsonl");
  const entry = (id: string) => JSON.stringify({ type: "message", id, timestamp: 1, message: { role: "user", content: [{ type: "text", text: id }] } }) + "\n";
  const torn = entry("torn").slice(0, -5);
  const call = '{"type":"message","id":"cut","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","arguments":{}}';
  const nuls = "\0".repeat(143_000);
  writeFileSync(path, [entry("a"), torn + entry("glued"), nuls + entry("padded"), nuls + "\n", torn + nuls + entry("both"), call + "\n", entry("b"), torn + entry("open").trimEnd()].join(""));
  const reader = fileReader(path);
  const first = (await reader.read(null, limits)) as Page;
  assert.deepEqual(ids(first), ["a", "glued", "padded", "both", "b"], "a call of a torn message is no record, and the last line may not be whole");
  appendFileSync(path, "\n" + entry("c"));
  const next = (await reader.read(first.cursor, limits)) as Page;
  assert.deepEqual(ids(next), ["open", "c"]);
  for (let cursor: string | null = null, seen = 0; seen < 7; seen++) {
    const page = (await reader.read(cursor, { events: 1, bytes: 1 << 20 })) as Page;
    assert.deepEqual(ids(page), [ids(first).concat(ids(next))[seen]]);
    cursor = page.cursor;
  }
});

test("a transcript file: torn lines are passed over, long ones read whole, pages keep to their size", async () => {
  const path = join(folder(), "s.jsonl");
  const big = JSON.stringify({ id: "big", text: "y".repeat(9 << 20) }) + "\n";
  writeFileSync(path, line("a") + '{"torn":\n' + "\n" + "null\n" + line("b") + big + line("c") + JSON.stringify({ id: "unended" }));
  const reader = fileReader(path);
  const seen: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = (await reader.read(cursor, { events: 500, bytes: 1 << 20 })) as Page;
    seen.push(ids(page).join());
    cursor = page.cursor;
    if (!page.more) break;
  }
  assert.deepEqual(seen, ["a,b", "big", "c,unended"]);
  const empty = join(folder(), "e.jsonl");
  writeFileSync(empty, "");
  const none = (await fileReader(empty).read(null, limits)) as Page;
  assert.deepEqual(none, { entries: [], cursor: "jsonl:0:0-0:", more: false });
  appendFileSync(empty, line("a"));
  assert.deepEqual(ids(await fileReader(empty).read(none.cursor, limits)), ["a"]);
});
