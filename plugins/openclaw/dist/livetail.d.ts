import type { HostMessage } from "./host.ts";
/**
 * Marks by which a message is known again. The host's two forms of one message
 * are not equal (tool ids rewritten, details dropped), so text is the last resort.
 */
export declare function marks(message: HostMessage): string[];
/** Those of the running turn's messages that are not in the window. */
export declare function missing(window: readonly HostMessage[], turn: readonly HostMessage[]): HostMessage[];
/**
 * The host's messages behind the newest one that the window has too; undefined
 * where the two have nothing in common, so that no place for a tail is known.
 */
export declare function behind(window: readonly HostMessage[], host: readonly HostMessage[]): HostMessage[] | undefined;
