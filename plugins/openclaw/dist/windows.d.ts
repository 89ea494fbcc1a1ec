import type { HostMessage } from "./host.ts";
export declare class Windows {
    #private;
    keep(key: string, sessionId: string, messages: readonly HostMessage[]): void;
    /** The last window, if it is of this host session: another one may be a rewound or reset one. */
    kept(key: string, sessionId: string): readonly HostMessage[] | undefined;
    forget(key: string): void;
}
