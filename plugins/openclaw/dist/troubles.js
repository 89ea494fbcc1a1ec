// What goes wrong is said once, not with every turn: again when it is over, and
// when it still goes on an hour later. One that comes and goes is said once a minute.
const minute = 60_000;
const hour = 60 * minute;
const most = 1_000;
export class Troubles {
    #log;
    #now;
    #kept = new Map();
    constructor(log, now = Date.now) {
        this.#log = log;
        this.#now = now;
    }
    /** Something is wrong with `topic`; `why` in words that need no more context. `key`: of this session alone. */
    begin(topic, why, key) {
        const now = this.#now();
        const known = this.#kept.get(topic);
        const again = !known || known.over;
        const loud = !known || now - known.said >= (known.over ? minute : hour);
        if (!known && this.#kept.size >= most)
            this.#kept.delete(this.#kept.keys().next().value);
        this.#kept.set(topic, {
            why,
            since: again ? now : known.since,
            said: loud ? now : known.said,
            loud: again ? loud : known.loud || loud,
            over: false,
            key,
        });
        if (loud)
            this.#log.warn(`engined: ${why}`);
    }
    /** It is over; said only where its beginning was. */
    end(topic, line) {
        const known = this.#kept.get(topic);
        if (!known || known.over)
            return;
        known.over = true;
        if (known.loud && line)
            this.#log.info(`engined: ${line}`);
    }
    /** What is wrong now with the node, for all sessions. */
    list() {
        return [...this.#kept.values()].filter((t) => !t.over && t.key === undefined).map(({ why, since }) => ({ why, since }));
    }
    /** The session is gone, and its troubles with it. */
    forget(key) {
        for (const [topic, trouble] of this.#kept)
            if (trouble.key === key)
                this.#kept.delete(topic);
    }
}
