// Resets and deletes that the service has not been told yet. Until it knows, the
// old conversation must not be shown, so they outlive the process.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
/** What is owed, by session key; kept in one small file. */
export class Pending {
    #file;
    #dir;
    #steps;
    /** Without a directory nothing outlives the process. */
    constructor(dir) {
        this.#dir = dir;
        this.#file = dir ? join(dir, "pending.json") : undefined;
        this.#steps = new Map();
        if (this.#file) {
            try {
                this.#steps = new Map(Object.entries(JSON.parse(readFileSync(this.#file, "utf8"))));
            }
            catch {
                // None is owed, or the file is not ours.
            }
        }
    }
    get(key) {
        return this.#steps.get(key);
    }
    keys() {
        return [...this.#steps.keys()];
    }
    set(key, step) {
        this.#steps.set(key, step);
        this.#save();
    }
    done(key, step) {
        if (this.#steps.get(key) !== step)
            return;
        this.#steps.delete(key);
        this.#save();
    }
    #save() {
        if (!this.#file || !this.#dir)
            return;
        try {
            if (this.#steps.size === 0) {
                rmSync(this.#file, { force: true });
                return;
            }
            mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
            const draft = `${this.#file}.${process.pid}`;
            writeFileSync(draft, JSON.stringify(Object.fromEntries(this.#steps)), { mode: 0o600 });
            renameSync(draft, this.#file);
        }
        catch {
            // Kept in memory; the transcript repeats a reset anyway.
        }
    }
}
