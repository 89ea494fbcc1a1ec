// A model provider that records what the model saw. It speaks the OpenAI chat
// wire with streaming; what it answers follows from the newest user message:
//
//   TOOL:name:{json}:END     calls a tool once, then answers
//   anything else            "reply N: " and the message's first words
//
// Each request is held against what a strict provider demands.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface WireMessage {
  role: string;
  content?: string | { type: string; text?: string }[] | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export interface ModelRequest {
  n: number;
  messages: WireMessage[];
  tools: string[];
  /** Characters of the request's body. */
  size: number;
  /** What a strict provider would refuse it for. */
  faults: string[];
}

export const textOf = (m: WireMessage | undefined): string =>
  typeof m?.content === "string" ? m.content : (m?.content ?? []).map((b) => b.text ?? "").join("\n");

/** Runtime context that the host puts behind the prompt is no message of the user. */
const internal = (text: string): boolean => text.startsWith("<<<BEGIN_OPENCLAW");

export class Provider {
  readonly requests: ModelRequest[] = [];
  /** How many of the next requests are refused as too long. */
  overflows = 0;
  /** Requests longer than this many tokens (characters by four) are refused. */
  window = Infinity;
  /** Set to hold answers back until it resolves. */
  gate: Promise<void> | undefined;
  /** Replies are padded to this many characters. */
  replySize = 0;
  refused = 0;
  #server: Server;
  #n = 0;

  constructor() {
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The newest request whose user messages hold the text. */
  saw(text: string): ModelRequest | undefined {
    return this.requests.findLast((r) => r.messages.some((m) => m.role === "user" && textOf(m).includes(text)));
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let raw = "";
    for await (const chunk of req) raw += chunk;
    res.setHeader("content-type", "application/json");
    if (req.method !== "POST") {
      res.end(JSON.stringify({ object: "list", data: [{ id: "mock-1", object: "model" }] }));
      return;
    }
    const body = JSON.parse(raw) as { messages: WireMessage[]; tools?: { function: { name: string } }[]; stream?: boolean; model: string };
    const n = ++this.#n;
    const tokens = Math.ceil(raw.length / 4);
    if (this.overflows > 0 || tokens > this.window) {
      if (this.overflows > 0) this.overflows--;
      this.refused++;
      const counted = Math.max(tokens, Number.isFinite(this.window) ? this.window + 1 : 40_000);
      res.statusCode = 400;
      res.end(
        JSON.stringify({
          error: {
            message: `This model's maximum context length is 32768 tokens. However, your messages resulted in ${counted} tokens. Please reduce the length of the messages.`,
            type: "invalid_request_error",
            code: "context_length_exceeded",
          },
        }),
      );
      return;
    }
    const tools = (body.tools ?? []).map((t) => t.function.name);
    this.requests.push({ n, messages: body.messages, tools, size: raw.length, faults: faults(body.messages) });
    await this.gate;

    const at = body.messages.findLastIndex((m) => m.role === "user" && !internal(textOf(m)));
    const prompt = textOf(body.messages[at]);
    const answered = body.messages.slice(at).some((m) => m.role === "tool");
    const wanted = answered ? null : /TOOL:(\w+):(\{.*?\}):END/s.exec(prompt);
    const call = wanted ? { id: `call_${n}`, type: "function", function: { name: wanted[1], arguments: wanted[2] } } : undefined;
    const words = prompt.replace(/^\[[^\]]*\] /, "").split("\n")[0]!.slice(0, 60);
    const reply = `reply ${n}: ${words}`.padEnd(this.replySize, " lorem");
    const usage = { prompt_tokens: tokens, completion_tokens: 12, total_tokens: tokens + 12 };
    const base = { id: `chatcmpl-${n}`, created: 1_700_000_000, model: body.model };
    if (!body.stream) {
      const message = { role: "assistant", content: call ? null : reply, ...(call ? { tool_calls: [call] } : {}) };
      res.end(JSON.stringify({ ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason: call ? "tool_calls" : "stop" }], usage }));
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    const send = (choices: unknown[], more = {}) =>
      res.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices, ...more })}\n\n`);
    send([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
    if (call) send([{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null }]);
    else send([{ index: 0, delta: { content: reply }, finish_reason: null }]);
    send([{ index: 0, delta: {}, finish_reason: call ? "tool_calls" : "stop" }]);
    send([], { usage });
    res.end("data: [DONE]\n\n");
  }
}

/** What is wrong with a list of messages, as a strict provider sees it. */
export function faults(messages: WireMessage[]): string[] {
  const out: string[] = [];
  let open = new Map<string, number>();
  messages.forEach((m, i) => {
    if (m.role === "tool") {
      if (!m.tool_call_id || !open.delete(m.tool_call_id)) out.push(`message ${i}: a result without its call`);
      return;
    }
    if (open.size > 0) out.push(`message ${i}: calls before it are not answered`);
    open = new Map((m.tool_calls ?? []).map((c) => [c.id, i]));
    if (m.role === "assistant" && !m.tool_calls?.length && textOf(m) === "") out.push(`message ${i}: an empty assistant`);
    if (i > 0 && m.role === "system") out.push(`message ${i}: a system message in the middle`);
  });
  if (open.size > 0) out.push("calls at the end are not answered");
  if (!messages.some((m) => m.role === "user")) out.push("no user message");
  return out;
}
