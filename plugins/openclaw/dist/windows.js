// The last window of each of the newest sessions, for when the service does not
// give another and the host's own messages would not fit.
const most = 32;
export class Windows {
    #kept = new Map();
    keep(key, sessionId, messages) {
        this.#kept.delete(key);
        if (this.#kept.size >= most)
            this.#kept.delete(this.#kept.keys().next().value);
        this.#kept.set(key, { sessionId, messages });
    }
    /** The last window, if it is of this host session: another one may be a rewound or reset one. */
    kept(key, sessionId) {
        const kept = this.#kept.get(key);
        return kept?.sessionId === sessionId ? kept.messages : undefined;
    }
    forget(key) {
        this.#kept.delete(key);
    }
}
