// Who this gateway is. Host transcripts are told apart by (gateway, host session
// id, entry id), so a gateway needs a name that no other has and that outlives
// restarts: a random one, kept in the host's state directory. Never the host's
// name: images and containers are copied with it.

import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { PluginApi } from "./host.ts";

/** The directory in which the plugin keeps its own small files. */
export function stateDir(api: Pick<PluginApi, "runtime">, env: NodeJS.ProcessEnv = process.env): string {
  let host: string | undefined;
  try {
    host = api.runtime?.state?.resolveStateDir?.(env);
  } catch {
    // Older hosts lack it, or refuse outside a run.
  }
  return join(host ?? env.OPENCLAW_STATE_DIR ?? join(homedir(), ".openclaw"), "engined");
}

/**
 * The kept name of this gateway, made on first use. Two processes that start at
 * once agree: the file appears whole, and the first one wins. Throws where the
 * directory cannot be written.
 */
export function keptGatewayId(dir: string): string {
  const file = join(dir, "gateway-id");
  const read = (): string | undefined => {
    try {
      return readFileSync(file, "utf8").trim() || undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  };
  const known = read();
  if (known) return known;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const id = `gw-${randomUUID()}`;
  const draft = join(dir, `.gateway-id-${process.pid}-${randomUUID()}`);
  writeFileSync(draft, `${id}\n`, { mode: 0o600 });
  try {
    linkSync(draft, file);
    return id;
  } catch (error) {
    const other = read();
    if (other) return other;
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    // A file system without hard links.
    writeFileSync(file, `${id}\n`, { mode: 0o600, flag: "wx" });
    return id;
  } finally {
    rmSync(draft, { force: true });
  }
}
