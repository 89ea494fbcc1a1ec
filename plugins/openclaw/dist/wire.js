// What leaves the host. Runtime contexts hold the whole configuration, tokens in
// it, and paths of the machine, so nothing is sent that is not listed here.
function pick(from, keys) {
    if (from === null || typeof from !== "object")
        return undefined;
    const out = {};
    for (const key of keys) {
        const value = from[key];
        if (value !== undefined && typeof value !== "function")
            out[key] = value;
    }
    return out;
}
const anchorKeys = [
    "agentId",
    "sessionId",
    "sessionKey",
    "generation",
    "entryId",
    "rawSeq",
    "effectiveParentId",
    "activeMessagePosition",
    "idempotencyKey",
    "logicalTurnId",
    "role",
];
/** An admission or terminal anchor without the path of its store. */
export function anchor(from) {
    return pick(from, anchorKeys);
}
const contextKeys = [
    "agentHarnessId",
    "provider",
    "modelId",
    "modelContextWindow",
    "tokenBudget",
    "currentTokenCount",
    "trigger",
    "forceReason",
    "attempt",
    "maxAttempts",
];
/** The few facts of a runtime context that a service may use. */
export function runtimeContext(from, tokenBudget) {
    const out = pick(from, contextKeys);
    if (!out)
        return undefined;
    const model = from.model;
    if (out.modelId === undefined && typeof model === "string")
        out.modelId = model;
    if (tokenBudget !== undefined)
        out.tokenBudget = tokenBudget;
    for (const key of ["provider", "modelId", "trigger", "forceReason", "agentHarnessId"]) {
        if (out[key] !== undefined && typeof out[key] !== "string")
            delete out[key];
    }
    for (const key of ["modelContextWindow", "tokenBudget", "currentTokenCount", "attempt", "maxAttempts"]) {
        if (out[key] !== undefined && !Number.isInteger(out[key]))
            delete out[key];
    }
    return out;
}
/** Usage of the newest model call, as the contract names its parts. */
export function usage(messages) {
    for (let i = messages.length - 1; i >= 0; i--) {
        const message = messages[i];
        if (message.role !== "assistant")
            continue;
        const out = pick(message.usage, ["input", "output", "cacheRead", "cacheWrite"]);
        if (!out || !Object.values(out).every((n) => Number.isInteger(n) && n >= 0))
            return undefined;
        return Object.values(out).some((n) => n > 0) ? out : undefined;
    }
    return undefined;
}
/** The names of this plugin's own tools among those that the model has. */
export function ownTools(available) {
    if (!available)
        return undefined;
    const own = [...available].filter((tool) => tool.startsWith("engined_"));
    return own.length > 0 ? own.sort() : undefined;
}
const whole = new Set(["message", "custom_message", "compaction", "branch_summary", "reset", "leaf", "label"]);
const frame = ["type", "id", "parentId", "timestamp", "appendMode"];
/**
 * A raw transcript entry for the service. What is part of the conversation goes
 * as it is; of the rest only its place in the tree: headers hold paths, custom
 * entries whatever a plugin put there.
 */
export function entry(raw) {
    if (raw === null || typeof raw !== "object")
        return undefined;
    const type = raw.type;
    if (typeof type === "string" && whole.has(type))
        return raw;
    return pick(raw, type === "session" ? [...frame, "version"] : type === "custom" ? [...frame, "customType"] : frame);
}
/** Where an entry stands in the tree, without what it says. */
export function place(raw) {
    return { ...pick(raw, frame), type: "custom", customType: "engined.refused" };
}
