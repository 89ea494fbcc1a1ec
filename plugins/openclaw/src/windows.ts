// The last window of each of the newest sessions, for when the service does not
// give another and the host's own messages would not fit.

import type { HostMessage } from "./host.ts";

const most = 32;

interface Kept {
  sessionId: string;
  messages: readonly HostMessage[];
}

export class Windows {
  readonly #kept = new Map<string, Kept>();

  keep(key: string, sessionId: string, messages: readonly HostMessage[]): void {
    this.#kept.delete(key);
    if (this.#kept.size >= most) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, { sessionId, messages });
  }

  /** The last window, if it is of this host session: another one may be a rewound or reset one. */
  kept(key: string, sessionId: string): readonly HostMessage[] | undefined {
    const kept = this.#kept.get(key);
    return kept?.sessionId === sessionId ? kept.messages : undefined;
  }

  forget(key: string): void {
    this.#kept.delete(key);
  }
}
