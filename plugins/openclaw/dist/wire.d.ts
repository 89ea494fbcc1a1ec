type Row = Record<string, unknown>;
/** An admission or terminal anchor without the path of its store. */
export declare function anchor(from: unknown): Row | undefined;
/** The few facts of a runtime context that a service may use. */
export declare function runtimeContext(from: unknown, tokenBudget?: number): Row | undefined;
/** Usage of the newest model call, as the contract names its parts. */
export declare function usage(messages: readonly Row[]): Row | undefined;
/** The names of this plugin's own tools among those that the model has. */
export declare function ownTools(available: Iterable<string> | undefined): string[] | undefined;
/**
 * A raw transcript entry for the service. What is part of the conversation goes
 * as it is; of the rest only its place in the tree: headers hold paths, custom
 * entries whatever a plugin put there.
 */
export declare function entry(raw: unknown): unknown;
/** Where an entry stands in the tree, without what it says. */
export declare function place(raw: unknown): unknown;
export {};
