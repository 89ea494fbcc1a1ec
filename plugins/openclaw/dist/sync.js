// Bringing the host's transcript to the service. The service keeps the cursor,
// per gateway and host session, so nothing here has to be remembered; what it
// knows already it skips.
import { AwayError, asProblem, message } from "./errors.js";
import { entry, place } from "./wire.js";
import { openTranscript, pageLimits } from "./transcript.js";
/** Sends what the service does not have. Rejects only after an abort. */
export async function sync(service, key, params, options) {
    const note = service.note(key);
    const result = await new Sync(service, key, params, options).run();
    note.synced = result.complete;
    note.syncFailure = result.reason;
    return result;
}
const rest = "the transcript is long: the rest follows after this turn and with the next ones";
class Sync {
    #service;
    #key;
    #params;
    #options;
    #sessionId;
    #end;
    #stored = 0;
    #sentPages = 0;
    #now;
    #limits;
    constructor(service, key, params, options) {
        this.#service = service;
        this.#key = key;
        this.#params = params;
        this.#options = options;
        this.#sessionId = params.sessionTarget?.sessionId ?? params.sessionId;
        this.#now = options.now ?? (() => performance.now());
        this.#end = this.#now() + options.deadline;
        this.#limits = service.note(key).page ?? pageLimits;
    }
    async run() {
        try {
            return await this.#pages();
        }
        catch (error) {
            this.#options.signal?.throwIfAborted();
            return this.#stopped(error instanceof AwayError && error.late && this.#sentPages > 0 ? rest : message(error));
        }
    }
    async #pages() {
        const reader = this.#options.reader ?? (await openTranscript(this.#params));
        if (!reader)
            return this.#stopped("this host shows no transcript");
        let cursor = await this.#cursor();
        let restarts = 0;
        for (;;) {
            const start = this.#now();
            const page = await reader.read(cursor, this.#limits);
            if (page === "later")
                return this.#stopped("the host cannot show its transcript now");
            if (page === "restart") {
                if (restarts++ > 0)
                    return this.#stopped("the host's transcript changes while it is read");
                cursor = null;
                continue;
            }
            if (!(await this.#sent(page))) {
                this.#limits = { ...this.#limits, events: Math.ceil(page.entries.length / 2) };
                continue;
            }
            if (!page.more)
                return { complete: true, stored: this.#stored };
            cursor = page.cursor;
            this.#resize(2);
            // A page that would not come to its end is not begun: it would be sent again.
            if (this.#left() < 2 * (this.#now() - start))
                return this.#stopped(rest);
        }
    }
    /** Pages grow while they get through, and shrink for the next sync where one did not in its time. */
    #resize(factor) {
        const size = (now, least, most) => Math.min(most, Math.max(least, Math.ceil(now * factor)));
        const { events, bytes } = pageLimits;
        this.#limits = { events: size(this.#limits.events, 1, events), bytes: size(this.#limits.bytes, 65_536, bytes) };
        this.#service.note(this.#key).page = this.#limits;
    }
    #left() {
        return Math.floor(this.#end - this.#now());
    }
    #stopped(reason) {
        return { complete: false, stored: this.#stored, reason };
    }
    async #cursor() {
        const { cursor } = await this.#service.client.call("GET /v1/sessions/{key}/transcript", this.#key, {
            query: { sessionId: this.#sessionId, gatewayId: this.#service.gatewayId },
            deadline: this.#left(),
            signal: this.#options.signal,
            probe: this.#options.probe,
        });
        if (cursor !== null && typeof cursor !== "string")
            throw new Error("the node's answer about a transcript is not known");
        return cursor || null;
    }
    /**
     * Sends a page; answers false where it is to be sent in smaller ones, since
     * something in it is refused. An entry that is refused alone would hold up all
     * that comes behind it for ever: it keeps its place and loses its content.
     */
    async #sent(page) {
        const entries = page.entries.map(entry).filter((e) => e !== undefined);
        if (entries.length === 0)
            return true;
        try {
            await this.#send(page.cursor, entries);
        }
        catch (error) {
            const problem = asProblem(error);
            if (!problem)
                this.#resize(0.5);
            if (problem?.status !== 413 && problem?.status !== 422)
                throw error;
            if (page.entries.length > 1)
                return false;
            await this.#send(page.cursor, [place(page.entries[0])]);
            const { id } = page.entries[0];
            this.#service.log.error(`engined: entry ${id} of ${this.#key} is refused and was sent without its content: ${message(error)}`);
        }
        return true;
    }
    async #send(cursor, entries) {
        const answer = await this.#service.client.call("POST /v1/sessions/{key}/transcript", this.#key, {
            body: {
                sessionId: this.#sessionId,
                gatewayId: this.#service.gatewayId,
                cursor,
                entries,
                lifecycleRevision: this.#params.sessionTarget?.expectedLifecycleRevision,
            },
            deadline: this.#left(),
            rest: this.#sentPages > 0,
            signal: this.#options.signal,
            probe: this.#options.probe,
        });
        if (!Number.isInteger(answer.stored))
            throw new Error("the node's answer to a transcript is not known");
        this.#stored += answer.stored;
        this.#sentPages++;
    }
}
