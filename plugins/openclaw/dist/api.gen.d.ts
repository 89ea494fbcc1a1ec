export interface AfterTurnParams {
    /** The text of a compaction that the host itself made during the turn. */
    autoCompactionSummary?: string;
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The message belongs to a heartbeat exchange. */
    isHeartbeat?: boolean;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Messages in order. */
    messages: Message[];
    /** How many of `messages` were there before the turn. */
    prePromptMessageCount: number;
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
    /** A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default. */
    tokenBudget?: number;
    /** What the provider reported; the prompt had input + cacheRead + cacheWrite tokens. */
    usage?: Usage;
}
export interface AfterTurnResult {
    /** What the turn set in motion: `none`, `scheduled` or `running`. */
    compaction: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** How many messages were new. */
    ingestedCount: number;
}
export interface AssembleParams {
    /** Answer as when the head was this seq. */
    asOfSeq?: number;
    /** Names of the tools that the model has. */
    availableTools?: string[];
    citationsMode?: string;
    /** Ask for `explanation`. */
    explain?: boolean;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Messages in order. */
    messages?: Message[];
    /** The model's id. */
    model?: string;
    /** A hint; never stored. */
    prompt?: string;
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
    /** A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default. */
    tokenBudget?: number;
}
export interface AssembleResult {
    /** While `epoch` and `fingerprint` are both equal, an earlier window is a prefix of a later one. */
    contextProjection?: ContextProjection;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The window's size by estimate. */
    estimatedTokens: number;
    /** One line a message and summary: shown or not, and why. */
    explanation?: Explanation[];
    /** The session's highest seq; it never goes back. */
    head: number;
    /** Messages of the path that are neither shown nor covered by a shown summary. */
    leftOut?: number;
    /** Messages in order. */
    messages: Message[];
    /** The smallest valid window does not fit; it is given nevertheless. */
    overBudget?: OverBudget;
    promptAuthority?: string;
    /** Text for the system prompt. */
    systemPromptAddition?: string;
    /** The budget that counted. */
    tokenBudget?: number;
}
export interface AttemptRow {
    endedAt: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    error?: string;
    outcome: string;
    startedAt: string;
    worker: string;
}
export interface AuditPage {
    audit: AuditRow[];
    /** The `after` of the next page; null at the end. */
    next: string | null;
}
export interface AuditRow {
    at: string;
    id: number;
    keyId: string;
    method: string;
    requestId: string;
    route: string;
    /** `committed`, or `duplicate` for a turn that was stored before. */
    status: number;
}
export interface BootstrapParams {
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Messages in order. */
    messages?: Message[];
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
}
export interface BootstrapResult {
    bootstrapped: boolean;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    importedMessages: number;
    reason?: string;
}
export interface CacheChange {
    code: string;
    detail: string;
}
export interface CacheFacts {
    /** When a child that never wrote is removed. */
    expiresAt?: number;
    lastCacheTouchAt?: number;
    lastCallUsage?: Usage;
    observation?: CacheObservation;
    retention?: string;
}
export interface CacheObservation {
    broke: boolean;
    /** Prompt tokens read from the provider's cache. */
    cacheRead?: number;
    changes?: CacheChange[];
    previousCacheRead?: number;
}
export interface Check {
    detail?: string;
    name: string;
    ok: boolean;
    /** The node is not ready without it. */
    required: boolean;
}
export interface CommitTurnParams {
    /** The host's anchor of the first message, kept as sent. */
    admission?: Record<string, unknown>;
    /** Names the turn; 1 to 512 bytes. */
    advancementKey: string;
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The message belongs to a heartbeat exchange. */
    isHeartbeat?: boolean;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Messages in order. */
    messages: Message[];
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
    /** The host's anchor of the last message, kept as sent. */
    terminal?: Record<string, unknown>;
    /** A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default. */
    tokenBudget?: number;
    /** What the provider reported; the prompt had input + cacheRead + cacheWrite tokens. */
    usage?: Usage;
}
export interface CommitTurnResult {
    /** What the turn set in motion: `none`, `scheduled` or `running`. */
    compaction: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** `committed`, or `duplicate` for a turn that was stored before. */
    status: string;
}
export interface CompactParams {
    /** The agent whose session this is. */
    agentId?: string;
    /** `budget` or `threshold`. */
    compactionTarget?: string;
    /** The prompt's size as the host saw it. */
    currentTokenCount?: number;
    /** What the summary should mind. */
    customInstructions?: string;
    /** Answer with the plan and write nothing. */
    dryRun?: boolean;
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Compact even under the threshold, whenever something older than the tail can be summarized smaller. */
    force?: boolean;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Ask for a successor: a new host session id for what follows the compaction. The native runtime, which `legacy` uses, heeds it. */
    rotateSession?: boolean;
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
    /** A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default. */
    tokenBudget?: number;
}
export interface CompactResult {
    compacted: boolean;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    ok: boolean;
    reason?: string;
    result?: CompactionOutcome;
}
export interface CompactionOutcome {
    details?: Record<string, unknown>;
    /** The host's entry id of the oldest message that stays, else its seq as a string. */
    firstKeptEntryId?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
    summary?: string;
    tokensAfter: number;
    tokensBefore: number;
}
export interface ContextProjection {
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: string;
    fingerprint: string;
    mode: string;
}
export interface EndedRequest {
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    reason: "deleted" | "completed" | "swept" | "released";
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface EngineList {
    /** The budget that counts where neither the call, the session nor the model has one. */
    defaultTokenBudget?: number;
    engines: EngineStatus[];
    quarantines: Quarantine[];
    serving?: string;
}
export interface EngineStatus {
    acceptedHostParams?: string[];
    hostRequirements?: Record<string, HostRequirement>;
    id: string;
    name: string;
    owner?: string;
    ownsCompaction?: boolean;
    quarantine?: string;
    slot?: string;
    transcriptSemantics?: TranscriptSemantics;
    turnMaintenanceMode?: string;
    version?: string;
}
export interface EventPage {
    events: EventRow[];
    /** The `after` of the next page; null at the end. */
    next: number | null;
}
export interface EventRow {
    /** What an event that is no message says. */
    data?: Record<string, unknown>;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The message belongs to a heartbeat exchange. */
    isHeartbeat?: boolean;
    message?: Message;
    /** The message that this one follows. */
    parentSeq?: number;
    recordedAt: string;
    role?: string;
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq: number;
    /** The host's transcript id that the event came under. */
    sessionId?: string;
    sessionKey: string;
    /** Tokens by estimate. */
    tokens?: number;
    type: string;
}
export interface ExpandedRow {
    cut?: boolean;
    id?: number;
    kind: "message" | "summary";
    level?: number;
    role?: string;
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq?: number;
    text: string;
    time: string;
    /** Tokens by estimate. */
    tokens: number;
}
export interface Expansion {
    id: number;
    items: ExpandedRow[];
    /** The `after` of the next page; null at the end. */
    next: number | null;
    /** Tokens by estimate. */
    tokens: number;
    total: number;
}
export interface Explanation {
    kind: string;
    reason: string;
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq: number;
    shown: boolean;
    /** Tokens by estimate. */
    tokens: number;
}
export interface FeedPage {
    /** The `after` of the next page, also when this one is empty. Opaque. */
    cursor: string;
    events: EventRow[];
}
export interface ForkRequest {
    /** A seq up to the parent's head: the fork sees what was there then. */
    atSeq?: number;
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Where the fork begins; nothing may live there. */
    newSessionKey: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface HostRequirement {
    requiredCapabilities: string[];
    unsupportedMessage?: string;
}
export interface Info {
    acceptedHostParams?: string[];
    hostRequirements?: Record<string, HostRequirement>;
    id: string;
    name: string;
    ownsCompaction?: boolean;
    transcriptSemantics?: TranscriptSemantics;
    turnMaintenanceMode?: string;
    version?: string;
}
export interface IngestBatchParams {
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** One key per message; "" is none. */
    idempotencyKeys?: string[];
    /** The message belongs to a heartbeat exchange. */
    isHeartbeat?: boolean;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** Messages in order. */
    messages: Message[];
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface IngestBatchResult {
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** How many messages were new. */
    ingestedCount: number;
    /** One seq per message, duplicates included. */
    seqs: number[];
}
export interface IngestParams {
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** Makes a retry harmless: the same key and message answer the first seq, another message is a conflict. White space and the order of members do not make another message; the text of a number does: `1` and `1.0` differ. */
    idempotencyKey?: string;
    /** The message belongs to a heartbeat exchange. */
    isHeartbeat?: boolean;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    message: Message;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface IngestResult {
    /** The message was there before; `seq` is the first one's. */
    duplicate: boolean;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    ingested: boolean;
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq: number;
}
export interface LeaseAnswer {
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** When a child that never wrote is removed. */
    expiresAt: string;
    /** The session's highest seq; it never goes back. */
    head: number;
    owner: string;
    renewed: boolean;
    token: string;
}
export interface LeaseEnd {
    released: boolean;
}
export interface LeaseRequest {
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    owner: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** How long the child may take to write first, in milliseconds; 0 is a day. */
    ttlMs: number;
}
export interface Lineage {
    /** The sessions that descend directly, newest first, at most 100. */
    children: Relative[];
    parent: Relative;
}
export interface Liveness {
    /** `committed`, or `duplicate` for a turn that was stored before. */
    status: string;
    version?: string;
}
export interface MaintainParams {
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    reason?: string;
    /** What engines read of the host's open record. */
    runtimeContext?: RuntimeContext;
    /** The run that the call belongs to; null is unknown. */
    runtimeSettings?: RuntimeSettings;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** The transcript in the host's own terms. */
    sessionTarget?: SessionTarget;
}
export interface MaintainResult {
    bytesFreed: number;
    changed: boolean;
    reason?: string;
    rewrittenEntries: number;
}
/** A message of any known dialect (OpenClaw, OpenAI chat, Anthropic), kept byte for byte: at most 8 MiB, nested at most 512 deep. */
export type Message = Record<string, unknown>;
export interface OverBudget {
    budget: number;
    items: OverBudgetItem[];
    needed: number;
}
export interface OverBudgetItem {
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq: number;
    /** Tokens by estimate. */
    tokens: number;
}
export interface PrepareSubagentSpawnParams {
    /** The host's transcript id of the child. */
    childSessionId?: string;
    /** Where the child's turns will come; nothing may live there. */
    childSessionKey: string;
    /** `isolated`, the default, or `fork`. */
    contextMode?: string;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** How long the child may take to write first, in milliseconds; 0 is a day. */
    ttlMs?: number;
}
export interface Problem {
    /** A node's checks, where it is not ready. */
    checks?: Check[];
    detail?: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch?: number;
    /** When a child that never wrote is removed. */
    expiresAt?: string;
    /** What to change, in the request's own words. */
    field?: string;
    /** The session's highest seq; it never goes back. */
    head?: number;
    /** The limit that was passed. */
    limit?: number;
    /** The byte of the body at which the trouble was seen. */
    offset?: number;
    /** The event that a known key already names. */
    seq?: number;
    /** The HTTP status. */
    status: number;
    title: string;
    /** Ends in a slug that never changes. */
    type: "https://github.com/engined/engined/problems/malformed" | "https://github.com/engined/engined/problems/unauthorized" | "https://github.com/engined/engined/problems/forbidden" | "https://github.com/engined/engined/problems/not-found" | "https://github.com/engined/engined/problems/unknown-session" | "https://github.com/engined/engined/problems/method-not-allowed" | "https://github.com/engined/engined/problems/request-timeout" | "https://github.com/engined/engined/problems/idempotency-conflict" | "https://github.com/engined/engined/problems/epoch-conflict" | "https://github.com/engined/engined/problems/session-erased" | "https://github.com/engined/engined/problems/lease-held" | "https://github.com/engined/engined/problems/lease-stale" | "https://github.com/engined/engined/problems/session-exists" | "https://github.com/engined/engined/problems/subagent-began" | "https://github.com/engined/engined/problems/nothing-to-undo" | "https://github.com/engined/engined/problems/session-key-gone" | "https://github.com/engined/engined/problems/damaged" | "https://github.com/engined/engined/problems/feed-era" | "https://github.com/engined/engined/problems/stale-head" | "https://github.com/engined/engined/problems/too-large" | "https://github.com/engined/engined/problems/unsupported-media-type" | "https://github.com/engined/engined/problems/validation" | "https://github.com/engined/engined/problems/rate-limited" | "https://github.com/engined/engined/problems/tenant-limit" | "https://github.com/engined/engined/problems/internal" | "https://github.com/engined/engined/problems/engine-failed" | "https://github.com/engined/engined/problems/unavailable" | "https://github.com/engined/engined/problems/too-busy" | "https://github.com/engined/engined/problems/not-ready" | "https://github.com/engined/engined/problems/encryption-unavailable" | "https://github.com/engined/engined/problems/feed-closed" | "https://github.com/engined/engined/problems/deadline";
}
export interface Quarantine {
    engineId: string;
    failedAt: string;
    operation: string;
    owner?: string;
    reason: string;
}
export interface QuarantineCleared {
    cleared: boolean;
}
export interface Range {
    from: number;
    to: number;
}
export interface Readiness {
    checks: Check[];
    ready: boolean;
}
export interface Receipt {
    complete: boolean;
    counts: Record<string, number>;
    erased: number;
    erasedAt: string | null;
}
export interface Relative {
    /** A seq up to the parent's head: the fork sees what was there then. */
    atSeq: number;
    /** `isolated`, the default, or `fork`. */
    contextMode?: "isolated" | "fork";
    createdAt: string;
    /** Why the child ended last. */
    endReason?: string;
    endedAt?: string;
    /** When a child that never wrote is removed. */
    expiresAt?: string;
    kind: "fork" | "subagent";
    /** Names the preparation; the same for a repeated one. */
    preparationId?: string;
}
export interface ResetRequest {
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The first seq that stays; absent, nothing does. */
    keepFromSeq?: number;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's transcript id after the reset; it becomes the session's. */
    nextSessionId?: string;
    reason?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface RewindRequest {
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
    /** Any seq up to the head. */
    toSeq: number;
}
export interface RollbackRequest {
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface RuntimeContext {
    agentHarnessId?: string;
    allowDeferredCompactionExecution?: boolean;
    attempt?: number;
    /** The prompt's size as the host saw it. */
    currentTokenCount?: number;
    forceReason?: string;
    maxAttempts?: number;
    modelContextWindow?: number;
    modelId?: string;
    promptCache?: CacheFacts;
    provider?: string;
    runId?: string;
    /** A positive number of tokens, written as an integer: `1e3` is refused. Absent: the newest one that a turn reported, else the configured default. */
    tokenBudget?: number;
    trigger?: string;
}
export interface RuntimeSettings {
    contextEngineSelection: SettingsSelection;
    diagnostics: SettingsDiagnostic;
    executionHost: SettingsHost;
    limits: SettingsLimits;
    /** The model's id. */
    model: SettingsModel;
    runtime: SettingsRuntime;
    schemaVersion: number;
}
export interface SearchHit {
    active: boolean;
    at: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    kind: "message" | "toolResult" | "toolCall" | "summary";
    marks: SearchMark[];
    role: "user" | "assistant" | "toolResult" | "system" | "note" | "summary" | "unknown";
    score: number;
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq: number;
    sessionKey: string;
    snippet: string;
    tool?: string;
}
export interface SearchIndex {
    current: boolean;
    indexedAt?: string;
    indexedTo?: number;
    note?: string;
}
export interface SearchMark {
    end: number;
    start: number;
}
export interface SearchPage {
    hits: SearchHit[];
    index: SearchIndex;
    /** The `after` of the next page; null at the end. */
    next: string | null;
    partial: boolean;
}
export interface SessionDetail {
    attempts: AttemptRow[];
    compactions: number;
    createdAt: string;
    /** Tokens that a compaction is owed for; 0 when none is. */
    debt: number;
    dialect: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** The highest seq that a host wrote; `expectedHead` is held against it. */
    hostHead: number;
    hostSessionId?: string;
    /** Of whom the session descends, and who descends from it. */
    lineage: Lineage;
    sessionKey: string;
    /** The budget that counts where a call names none. */
    tokenBudget: number;
    /** The window's size by estimate, before any trimming. */
    tokens: number;
    updatedAt: string;
}
export interface SessionPage {
    /** The `after` of the next page; null at the end. */
    next: string | null;
    sessions: SessionRow[];
}
export interface SessionRow {
    createdAt: string;
    /** Tokens that a compaction is owed for; 0 when none is. */
    debt: number;
    dialect: string;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** The highest seq that a host wrote; `expectedHead` is held against it. */
    hostHead: number;
    hostSessionId?: string;
    sessionKey: string;
    /** The budget that counts where a call names none. */
    tokenBudget: number;
    /** The window's size by estimate, before any trimming. */
    tokens: number;
    updatedAt: string;
}
export interface SessionTarget {
    /** The agent whose session this is. */
    agentId?: string;
    expectedLifecycleRevision?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
    storePath?: string;
    threadId?: string;
}
export interface SettingsDiagnostic {
    degradedReason: string | null;
    fallbackReason: string | null;
}
export interface SettingsHost {
    id: string | null;
    label: string | null;
}
export interface SettingsLimits {
    maxOutputTokens: number | null;
    promptTokenBudget: number | null;
}
export interface SettingsModel {
    family: string | null;
    provider: string | null;
    requested: string | null;
    resolved: string | null;
}
export interface SettingsRuntime {
    harnessId: string | null;
    host: string;
    mode: string;
    runtimeId: string | null;
}
export interface SettingsSelection {
    selectedId: string | null;
    source: string;
}
export interface SourceList {
    sources: SourceRow[];
}
export interface SourceRow {
    id?: number;
    kind: "event" | "summary";
    /** The event's place in its session: 1, 2, 3 … without gaps. */
    seq?: number;
}
export interface StepResult {
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
}
export interface SubagentEndedResult {
    ended: boolean;
}
export interface SubagentPrepared {
    /** Names the preparation; the same for a repeated one. */
    preparationId?: string;
}
export interface SubagentRolledBack {
    rolledBack: boolean;
}
export interface SummarizationAnswer {
    finishReason?: "stop" | "length" | "refusal";
    /** The model's id. */
    model?: string;
    text: string;
    /** What the provider reported; the prompt had input + cacheRead + cacheWrite tokens. */
    usage?: SummarizationUsage;
}
export interface SummarizationFailure {
    reason: string;
}
export interface SummarizationJob {
    deadline: string;
    id: string;
    /** The model's id. */
    model?: string;
    request: SummarizationRequest;
    sessionKey: string;
}
export interface SummarizationRequest {
    maxTokens: number;
    /** A hint; never stored. */
    prompt: string;
    system: string;
}
export interface SummarizationSettled {
    accepted: boolean;
}
export interface SummarizationUsage {
    inputTokens: number;
    outputTokens: number;
}
export interface SummarizationWish {
    models?: string[];
    owner: string;
    waitMs?: number;
}
export interface SummarizerList {
    spend?: TenantSpend;
    summarizers: SummarizerRow[];
}
export interface SummarizerRow {
    dailyLimitMicros?: number;
    failedAt?: string;
    failures: number;
    kind?: string;
    lastError?: string;
    /** The model's id. */
    model?: string;
    name: string;
    openUntil?: string;
    state: "closed" | "open" | "half-open";
    today: SummarizerUse;
}
export interface SummarizerUse {
    calls: number;
    costMicros: number;
    failed: number;
    inputTokens: number;
    outputTokens: number;
    tookMillis: number;
}
export interface SummaryList {
    summaries: SummaryRow[];
}
export interface SummaryRow {
    /** The summaries it covers directly. */
    children?: number[];
    costMicros?: number;
    coveredTokens: number;
    /** All messages under it, as ranges of seqs. */
    covers: Range[];
    createdAt: string;
    degraded?: boolean;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    id: number;
    inputTokens?: number;
    level: number;
    /** The summary stands in the window now. */
    live: boolean;
    /** The model's id. */
    model?: string;
    outputTokens?: number;
    promptVersion?: string;
    sourceHash?: string;
    sourceTokens: number;
    summarizer: string;
    text: string;
    /** Tokens by estimate. */
    tokens: number;
    tookMillis?: number;
}
export interface TenantSpend {
    costMicros: number;
    limitMicros?: number;
    resetsAt: string;
}
export interface TranscriptCursor {
    /** Where the host goes on reading; null when nothing was synced yet. */
    cursor: string | null;
    /** The host's lifecycle revision; it changes with every reset. */
    lifecycleRevision?: string;
}
export interface TranscriptParams {
    /** The host's bookmark behind these entries; kept with them, never read. Absent: the kept one stays. */
    cursor?: string;
    /** Raw entries of the host's transcript, in its order: messages, resets, leaf moves, compactions and all others, each as the host keeps it. */
    entries: unknown[];
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's lifecycle revision; it changes with every reset. */
    lifecycleRevision?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface TranscriptResult {
    /** The bookmark that is kept now; null when none is. */
    cursor: string | null;
    /** Entries that were there: read before, copied from another transcript of the key, or stored as part of a turn. With `stored` they are all entries. */
    duplicates: number;
    /** Changes exactly when the meaning of the window's prefix changes. */
    epoch: number;
    /** The session's highest seq; it never goes back. */
    head: number;
    /** How many of the stored entries are messages. */
    messages: number;
    /** Entries that were never seen before. */
    stored: number;
}
export interface TranscriptSemantics {
    currentTurnFence?: string;
    turnAdvancementIdempotency?: string;
}
export interface UndoRequest {
    /** Undo the compaction that began this epoch; absent, the newest one. */
    epoch?: number;
    /** The epoch as the caller knows it; another one answers 409 `epoch-conflict`. */
    expectedEpoch?: number;
    /** The highest seq a host wrote, as the caller knows it; another one answers 412 `stale-head`. */
    expectedHead?: number;
    /** Which gateway speaks, where several share a session. */
    gatewayId?: string;
    /** The token of the session's lease, where the caller holds it; one that is wrong or expired answers 409 `lease-stale`. A write without one is never refused because of a lease; windows do not ask for it. */
    leaseToken?: string;
    /** The host's transcript id under this key. */
    sessionId?: string;
}
export interface Usage {
    /** Prompt tokens read from the provider's cache. */
    cacheRead?: number;
    /** Prompt tokens written to the provider's cache. */
    cacheWrite?: number;
    /** Prompt tokens that were not cached. */
    input?: number;
    /** Tokens of the answer. */
    output?: number;
}
/** Every route: what it takes and what it answers. */
export interface Routes {
    /** Tell that the process lives */
    "GET /healthz": {
        query: Record<never, never>;
        body: undefined;
        answer: Liveness;
    };
    /** Read the node's metrics in the Prometheus format */
    "GET /metrics": {
        query: Record<never, never>;
        body: undefined;
        answer: unknown;
    };
    /** Tell whether the node can serve, and what is missing */
    "GET /readyz": {
        query: Record<never, never>;
        body: undefined;
        answer: Readiness;
    };
    /** Read who called what, newest first */
    "GET /v1/audit": {
        query: {
            after?: string;
            limit?: number;
            sessionKey?: string;
            keyId?: string;
            since?: string;
            until?: string;
        };
        body: undefined;
        answer: AuditPage;
    };
    /** Say which engine serves */
    "GET /v1/engine": {
        query: Record<never, never>;
        body: undefined;
        answer: Info;
    };
    /** List the engines of this node */
    "GET /v1/engines": {
        query: Record<never, never>;
        body: undefined;
        answer: EngineList;
    };
    /** Give an engine another chance on this node */
    "DELETE /v1/engines/{engine}/quarantine": {
        query: Record<never, never>;
        body: undefined;
        answer: QuarantineCleared;
    };
    /** Read the tenant's events */
    "GET /v1/feed": {
        query: {
            after?: string;
            latest?: number;
            limit?: number;
        };
        body: undefined;
        answer: FeedPage;
    };
    /** Search messages, tool results, tool calls and summaries */
    "GET /v1/search": {
        query: {
            q?: string;
            regex?: string;
            match?: string;
            sessionKey?: string;
            role?: string;
            kind?: string;
            tool?: string;
            epoch?: number;
            since?: string;
            until?: string;
            path?: string;
            sort?: string;
            after?: string;
            limit?: number;
        };
        body: undefined;
        answer: SearchPage;
    };
    /** Erase all sessions whose keys begin with a prefix */
    "DELETE /v1/sessions": {
        query: {
            keyPrefix?: string;
        };
        body: undefined;
        answer: Receipt;
    };
    /** List sessions */
    "GET /v1/sessions": {
        query: {
            after?: string;
            keyContains?: string;
            limit?: number;
        };
        body: undefined;
        answer: SessionPage;
    };
    /** Erase a session */
    "DELETE /v1/sessions/{key}": {
        query: Record<never, never>;
        body: undefined;
        answer: Receipt;
    };
    /** Look at a session */
    "GET /v1/sessions/{key}": {
        query: Record<never, never>;
        body: undefined;
        answer: SessionDetail;
    };
    /** Tell that a turn ended and what it added */
    "POST /v1/sessions/{key}/after-turn": {
        query: Record<never, never>;
        body: AfterTurnParams;
        answer: AfterTurnResult;
    };
    /** Get the window for the next model call */
    "POST /v1/sessions/{key}/assemble": {
        query: Record<never, never>;
        body: AssembleParams;
        answer: AssembleResult;
    };
    /** Hand over the host's history of a session */
    "POST /v1/sessions/{key}/bootstrap": {
        query: Record<never, never>;
        body: BootstrapParams;
        answer: BootstrapResult;
    };
    /** Store an accepted turn once */
    "POST /v1/sessions/{key}/commit-turn": {
        query: Record<never, never>;
        body: CommitTurnParams;
        answer: CommitTurnResult;
    };
    /** Make the next window smaller now */
    "POST /v1/sessions/{key}/compact": {
        query: Record<never, never>;
        body: CompactParams;
        answer: CompactResult;
    };
    /** Read a session's log */
    "GET /v1/sessions/{key}/events": {
        query: {
            after?: number;
            limit?: number;
            type?: string;
        };
        body: undefined;
        answer: EventPage;
    };
    /** Begin a session with this one's window */
    "POST /v1/sessions/{key}/fork": {
        query: Record<never, never>;
        body: ForkRequest;
        answer: StepResult;
    };
    /** Store one message */
    "POST /v1/sessions/{key}/ingest": {
        query: Record<never, never>;
        body: IngestParams;
        answer: IngestResult;
    };
    /** Store several messages, all or none */
    "POST /v1/sessions/{key}/ingest-batch": {
        query: Record<never, never>;
        body: IngestBatchParams;
        answer: IngestBatchResult;
    };
    /** Give a lease back */
    "DELETE /v1/sessions/{key}/lease": {
        query: {
            token?: string;
        };
        body: undefined;
        answer: LeaseEnd;
    };
    /** Take or renew a session's lease */
    "POST /v1/sessions/{key}/lease": {
        query: Record<never, never>;
        body: LeaseRequest;
        answer: LeaseAnswer;
    };
    /** Do housekeeping */
    "POST /v1/sessions/{key}/maintain": {
        query: Record<never, never>;
        body: MaintainParams;
        answer: MaintainResult;
    };
    /** Hide what came before */
    "POST /v1/sessions/{key}/reset": {
        query: Record<never, never>;
        body: ResetRequest;
        answer: StepResult;
    };
    /** Go back to an earlier message */
    "POST /v1/sessions/{key}/rewind": {
        query: Record<never, never>;
        body: RewindRequest;
        answer: StepResult;
    };
    /** Ready a sub-agent's session */
    "POST /v1/sessions/{key}/subagents": {
        query: Record<never, never>;
        body: PrepareSubagentSpawnParams;
        answer: SubagentPrepared;
    };
    /** Tell that a sub-agent ended */
    "POST /v1/sessions/{key}/subagents/{child}/ended": {
        query: Record<never, never>;
        body: EndedRequest;
        answer: SubagentEndedResult;
    };
    /** Undo a sub-agent's preparation */
    "POST /v1/sessions/{key}/subagents/{child}/rollback": {
        query: Record<never, never>;
        body: RollbackRequest;
        answer: SubagentRolledBack;
    };
    /** Read the summary tree */
    "GET /v1/sessions/{key}/summaries": {
        query: Record<never, never>;
        body: undefined;
        answer: SummaryList;
    };
    /** Look at a summary */
    "GET /v1/sessions/{key}/summaries/{id}": {
        query: Record<never, never>;
        body: undefined;
        answer: SummaryRow;
    };
    /** Read what a summary covers, in words */
    "GET /v1/sessions/{key}/summaries/{id}/expand": {
        query: {
            maxTokens?: number;
            messages?: string;
            after?: number;
        };
        body: undefined;
        answer: Expansion;
    };
    /** Expand a summary */
    "GET /v1/sessions/{key}/summaries/{id}/sources": {
        query: Record<never, never>;
        body: undefined;
        answer: SourceList;
    };
    /** Read where the host goes on with its transcript */
    "GET /v1/sessions/{key}/transcript": {
        query: {
            sessionId?: string;
            gatewayId?: string;
        };
        body: undefined;
        answer: TranscriptCursor;
    };
    /** Take over a page of the host's transcript */
    "POST /v1/sessions/{key}/transcript": {
        query: Record<never, never>;
        body: TranscriptParams;
        answer: TranscriptResult;
    };
    /** Undo a compaction */
    "POST /v1/sessions/{key}/undo-compaction": {
        query: Record<never, never>;
        body: UndoRequest;
        answer: StepResult;
    };
    /** Take a question for the host's own model */
    "POST /v1/summarization/lease": {
        query: Record<never, never>;
        body: SummarizationWish;
        answer: SummarizationJob;
    };
    /** Answer a question with what the model said */
    "POST /v1/summarization/{id}/answer": {
        query: Record<never, never>;
        body: SummarizationAnswer;
        answer: SummarizationSettled;
    };
    /** Say that the model gave no answer */
    "POST /v1/summarization/{id}/fail": {
        query: Record<never, never>;
        body: SummarizationFailure;
        answer: SummarizationSettled;
    };
    /** List whom compactions ask for summaries */
    "GET /v1/summarizers": {
        query: Record<never, never>;
        body: undefined;
        answer: SummarizerList;
    };
}
