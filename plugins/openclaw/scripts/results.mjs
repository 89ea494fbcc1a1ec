// Puts what the last end-to-end runs found into docs/openclaw.md, between its
// markers: one row a scenario, one column a host version.
import { readFileSync, writeFileSync } from "node:fs";

const cache = process.env.ENGINED_OPENCLAW_CACHE ?? new URL("../../../.tmp/openclaw", import.meta.url).pathname;
const found = JSON.parse(readFileSync(`${cache}/results.json`, "utf8"));
const versions = ["2026.9.6", "2026.6.11"];
const files = { "2026.9.6": "current.test.ts", "2026.6.11": "older.test.ts" };
const names = [...new Set(Object.keys(found).map((k) => k.slice(k.indexOf(": ") + 2)))];
const cell = (v, n) => {
  const r = found[`${v}: ${n}`];
  return r ? (r.passed ? "passes" : "**fails**") : "–";
};
const table = [
  `| Scenario (the test's name) | ${versions.map((v) => `${v} (\`${files[v]}\`)`).join(" | ")} |`,
  `|---|${versions.map(() => "---").join("|")}|`,
  ...names.map((n) => `| ${n} | ${versions.map((v) => cell(v, n)).join(" | ")} |`),
].join("\n");
const target = new URL("../../../docs/openclaw.md", import.meta.url);
const text = readFileSync(target, "utf8");
writeFileSync(target, text.replace(/<!-- results -->.*<!-- end of results -->/s, () => `<!-- results -->\n${table}\n<!-- end of results -->`));
