// Writes src/api.gen.ts from docs/openapi.json: the schemas as types and one
// route table that ties each method and path to its query, body and answer.
// With --check it writes nothing and fails where the file is stale.
import { readFileSync, writeFileSync } from "node:fs";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = new URL("../src/api.gen.ts", import.meta.url);
const doc = JSON.parse(readFileSync(source, "utf8"));

const name = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key));
const indent = (depth) => "  ".repeat(depth);

function typeOf(schema, depth = 0) {
  if (!schema || schema === true || Object.keys(schema).length === 0) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const union = schema.oneOf ?? schema.anyOf;
  if (union) return union.map((s) => typeOf(s, depth)).join(" | ");
  const types = [schema.type].flat().filter(Boolean);
  if (types.length > 1) return types.map((t) => typeOf({ ...schema, type: t }, depth)).join(" | ");
  switch (types[0]) {
    case "string": return "string";
    case "integer":
    case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": {
      const item = typeOf(schema.items, depth);
      return /[ |]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    case "object": {
      if (!schema.properties) {
        const values = schema.additionalProperties;
        return `Record<string, ${values && values !== true ? typeOf(values, depth) : "unknown"}>`;
      }
      return fields(schema, depth);
    }
  }
  return "unknown";
}

function fields(schema, depth) {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([key, value]) => {
    const about = value.description ? `${indent(depth + 1)}/** ${value.description.replaceAll("*/", "* /").replace(/\s+/g, " ")} */\n` : "";
    return `${about}${indent(depth + 1)}${name(key)}${required.has(key) ? "" : "?"}: ${typeOf(value, depth + 1)};`;
  });
  return `{\n${lines.join("\n")}\n${indent(depth)}}`;
}

const content = (body) => body?.content?.["application/json"]?.schema;

let out = "// Generated from docs/openapi.json by scripts/generate.mjs. DO NOT EDIT.\n";
for (const [key, schema] of Object.entries(doc.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))) {
  const about = schema.description ? `\n/** ${schema.description.replace(/\s+/g, " ")} */` : "";
  out += schema.properties
    ? `${about}\nexport interface ${key} ${fields(schema, 0)}\n`
    : `${about}\nexport type ${key} = ${typeOf(schema)};\n`;
}
out += "\n/** Every route: what it takes and what it answers. */\nexport interface Routes {\n";
for (const [path, methods] of Object.entries(doc.paths)) {
  for (const [method, op] of Object.entries(methods)) {
    const query = (op.parameters ?? []).filter((p) => p.in === "query");
    const ok = Object.entries(op.responses).find(([status]) => status.startsWith("2"))?.[1];
    const answer = content(ok);
    if (op.responses["200"]?.content?.["text/event-stream"]) continue;
    out += `${op.summary ? `  /** ${op.summary} */\n` : ""}  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {\n`;
    out += `    query: ${query.length ? `{ ${query.map((p) => `${name(p.name)}${p.required ? "" : "?"}: ${typeOf(p.schema)}`).join("; ")} }` : "Record<never, never>"};\n`;
    out += `    body: ${content(op.requestBody) ? typeOf(content(op.requestBody)) : "undefined"};\n`;
    out += `    answer: ${answer ? typeOf(answer, 2) : "unknown"};\n  };\n`;
  }
}
out += "}\n";

if (process.argv.includes("--check")) {
  let present = "";
  try { present = readFileSync(target, "utf8"); } catch { /* missing is stale */ }
  if (present !== out) {
    console.error("src/api.gen.ts is stale: run `make plugin` and commit what it wrote");
    process.exit(1);
  }
} else {
  writeFileSync(target, out);
}
