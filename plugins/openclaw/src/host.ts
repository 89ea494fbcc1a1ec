// What this plugin uses of the host's plugin API and of the context engine
// contract, in both versions it serves. The host ships no types that a plugin
// could depend on without installing the host, so they are written down here.

/** A message of the host: any object with a role. */
export type HostMessage = Record<string, unknown> & { role?: string };

export interface SessionTarget {
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
  storePath?: string;
  threadId?: string;
  /** Set after the first reset of a session; changes with each. */
  expectedLifecycleRevision?: string;
}

/** What every call about a session carries. */
export interface SessionParams {
  sessionId: string;
  sessionKey?: string;
  sessionTarget?: SessionTarget;
  sessionFile?: string;
  runtimeSettings?: Record<string, unknown>;
  runtimeContext?: Record<string, unknown>;
  abortSignal?: AbortSignal;
}

export interface AssembleParams extends SessionParams {
  messages: HostMessage[];
  tokenBudget?: number;
  availableTools?: Set<string> | string[];
  citationsMode?: string;
  model?: string;
  prompt?: string;
}

export interface AssembleResult {
  messages: HostMessage[];
  estimatedTokens: number;
  systemPromptAddition?: string;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  contextProjection?: { mode: "per_turn" | "thread_bootstrap"; epoch?: string; fingerprint?: string };
}

export interface CommitTurnParams extends SessionParams {
  advancementKey: string;
  admission: Record<string, unknown>;
  terminal: Record<string, unknown>;
  messages: HostMessage[];
  isHeartbeat?: boolean;
}

export interface AfterTurnParams extends SessionParams {
  messages: HostMessage[];
  prePromptMessageCount: number;
  autoCompactionSummary?: string;
  isHeartbeat?: boolean;
  tokenBudget?: number;
}

export interface CompactParams extends SessionParams {
  agentId?: string;
  tokenBudget?: number;
  force?: boolean;
  currentTokenCount?: number;
  compactionTarget?: "budget" | "threshold";
  customInstructions?: string;
}

export interface CompactResult {
  ok: boolean;
  compacted: boolean;
  reason?: string;
  result?: { summary?: string; firstKeptEntryId?: string; tokensBefore: number; tokensAfter?: number; details?: unknown };
}

export interface BootstrapResult {
  bootstrapped: boolean;
  importedMessages: number;
  reason?: string;
}

export interface MaintainResult {
  changed: boolean;
  bytesFreed: number;
  rewrittenEntries: number;
  reason?: string;
}

export interface SpawnParams {
  parentSessionKey: string;
  childSessionKey: string;
  contextMode?: "isolated" | "fork";
  parentSessionId?: string;
  childSessionId?: string;
  ttlMs?: number;
}

export type SubagentEndReason = "deleted" | "completed" | "swept" | "released";

/** One page of the host's raw transcript, as 2026.9.6 reads it. */
export type RawDelta =
  | { kind: "page"; cursor: string; hasMore: boolean; events: { event: unknown; seq: number }[]; requiredBytes?: number }
  | { kind: "reset"; cursor?: string }
  | { kind: "missing" | "unavailable"; reason?: string };

export interface ToolResult {
  content: { type: "text"; text: string }[];
  details?: unknown;
}

export interface AgentTool {
  name: string;
  label: string;
  description: string;
  parameters: Record<string, unknown>;
  execute(id: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult>;
}

export interface CommandContext {
  sessionKey?: string;
  sessionId?: string;
  sessionTarget?: SessionTarget;
  agentId?: string;
  args?: string;
  config?: Record<string, unknown>;
}

export interface SessionEvent {
  sessionId?: string;
  sessionKey?: string;
  reason?: string;
  nextSessionId?: string;
  resumedFrom?: string;
}

export interface Logger {
  debug?(line: string): void;
  info(line: string): void;
  warn(line: string): void;
  error(line: string): void;
}

export interface PluginApi {
  id?: string;
  registrationMode?: string;
  config?: Record<string, unknown>;
  pluginConfig?: Record<string, unknown>;
  logger: Logger;
  runtime?: { version?: string; state?: { resolveStateDir?(env: NodeJS.ProcessEnv): string } };
  registerContextEngine(id: string, factory: (ctx: unknown) => unknown): unknown;
  registerTool?(factory: (ctx: { sessionKey?: string }) => AgentTool[] | null, options: { names: string[] }): void;
  registerCommand?(command: {
    name: string;
    description: string;
    acceptsArgs?: boolean;
    handler(ctx: CommandContext): Promise<{ text: string }>;
  }): void;
  on?(hook: string, handler: (event: SessionEvent, ctx: SessionEvent) => unknown): void;
}
