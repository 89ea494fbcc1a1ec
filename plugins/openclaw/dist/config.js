// The plugin's settings, checked once. A bad setting is said and replaced by its
// default: a typing error must not cost anybody a turn.
export const defaults = {
    baseUrl: "http://127.0.0.1:7420",
    keyPrefix: "",
    reserveTokens: 40_000,
    toolScope: "session",
    deadlines: { assemble: 2_000, sync: 3_000, commit: 5_000, compact: 150_000, maintain: 5_000, other: 3_000, turn: 10_000 },
};
/** Reads what the user wrote; `complain` is told what was not taken. */
export function readConfig(raw, complain) {
    const given = raw ?? {};
    const text = (key) => {
        const value = given[key];
        if (value === undefined || value === "")
            return undefined;
        if (typeof value === "string")
            return value;
        complain(`engined: ${key} is not a string; it is ignored`);
        return undefined;
    };
    const positive = (value, fallback, key, least) => {
        if (value === undefined)
            return fallback;
        if (typeof value === "number" && Number.isInteger(value) && value >= least)
            return value;
        complain(`engined: ${key} is not a whole number of at least ${least}; ${fallback} is used`);
        return fallback;
    };
    let baseUrl = text("baseUrl") ?? defaults.baseUrl;
    if (!/^https?:$/.test(protocol(baseUrl))) {
        complain(`engined: baseUrl is not an http or https URL; ${defaults.baseUrl} is used`);
        baseUrl = defaults.baseUrl;
    }
    const scope = text("toolScope");
    if (scope !== undefined && scope !== "session" && scope !== "tenant") {
        complain("engined: toolScope is neither session nor tenant; session is used");
    }
    const limits = (given.deadlines ?? {});
    const deadlines = { ...defaults.deadlines };
    for (const key of Object.keys(deadlines)) {
        deadlines[key] = positive(limits[key], deadlines[key], `deadlines.${key}`, 1);
    }
    return {
        baseUrl: baseUrl.replace(/\/+$/, ""),
        apiKey: text("apiKey"),
        gatewayId: text("gatewayId"),
        keyPrefix: text("keyPrefix") ?? "",
        reserveTokens: positive(given.reserveTokens, defaults.reserveTokens, "reserveTokens", 0),
        toolScope: scope === "tenant" ? "tenant" : "session",
        deadlines,
    };
}
function protocol(url) {
    try {
        return new URL(url).protocol;
    }
    catch {
        return "";
    }
}
