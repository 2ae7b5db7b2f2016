import { readFileSync } from "node:fs";
import { replacePrivateFile } from "../../internal/private-file.ts";
import { hasHolderEnded, thisProcess } from "../../internal/process-identity.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";
import type { LogPaths } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";
import { withStoreErrors, nullIfMissing } from "./store-failure.ts";

/** The last lease of a session, live or expired. The next lease has a larger token. */
interface LastLease {
  readonly runId: string;
  readonly token: number;
  readonly expiresAt: string;
  /** The identity of the process that acquired it, as JSON. */
  readonly holder?: string;
}

const HOLDER = JSON.stringify(thisProcess);

/** Leases in files, which exclude all other processes that use the directory. */
export function createFileLeases(files: SessionFiles): LeaseTable {
  /** Runs a task under the session's lock. Resolves to null if there is no such session. */
  const locked = <T>(sessionId: string, task: (paths: LogPaths) => Promise<T>): Promise<T | null> =>
    withStoreErrors(async () => (await files.live.find(sessionId))?.writer.exclusively(task) ?? null);
  return {
    async acquire(sessionId, runId, ttlMs) {
      files.checkWritable();
      const taken = await locked(sessionId, async ({ lease }) => {
        const stored = readStored(lease);
        const held = readLease(lease, files.options.clock());
        if (held !== null) throw new SessionBusyError(sessionId, `run ${held.runId}`);
        const next = { runId, token: (stored?.token ?? 0) + 1, untilMs: files.options.clock().getTime() + ttlMs };
        await writeStored(lease, next, HOLDER);
        return next;
      });
      if (taken === null) throw new SessionNotFoundError(sessionId);
      return taken;
    },
    renew: (sessionId, token, ttlMs) =>
      locked(sessionId, async ({ lease }) => {
        const stored = readStored(lease);
        if (stored === null || stored.token !== token || !isLive(stored, files.options.clock())) return null;
        const untilMs = files.options.clock().getTime() + ttlMs;
        await writeStored(lease, { ...stored, untilMs }, stored.holder);
        return untilMs;
      }),
    async release(sessionId, token) {
      await locked(sessionId, ({ lease }) => endLease(lease, token, files.options.clock()));
    },
    current: (sessionId) =>
      withStoreErrors(async () => {
        const file = await files.live.find(sessionId);
        return file === null ? null : readLease(file.paths.lease, files.options.clock());
      }),
  };
}

/** The live lease in a file, or null. A lease whose process has ended is not live. */
export function readLease(path: string, now: Date): StoredLease | null {
  const stored = readStored(path);
  if (stored === null || !isLive(stored, now) || hasHolderEnded(stored.holder)) return null;
  return { runId: stored.runId, token: stored.token, untilMs: Date.parse(stored.expiresAt) };
}

/** The token of the lease in a file if it has not expired, or null. */
export function readToken(path: string, now: Date): number | null {
  const stored = readStored(path);
  return stored === null || !isLive(stored, now) ? null : stored.token;
}

/** Ends the lease with a token, or any lease if the token is null. Call it under the session's lock. */
export async function endLease(path: string, token: number | null, now: Date): Promise<void> {
  const stored = readStored(path);
  if (stored === null || !isLive(stored, now) || (token !== null && stored.token !== token)) return;
  await writeStored(path, { ...stored, untilMs: now.getTime() }, stored.holder);
}

function isLive({ expiresAt }: LastLease, now: Date): boolean {
  return expiresAt > now.toISOString();
}

function readStored(path: string): LastLease | null {
  const text = nullIfMissing(() => readFileSync(path, "utf8"));
  return text === null ? null : (JSON.parse(text) as LastLease);
}

function writeStored(path: string, { runId, token, untilMs }: StoredLease, holder: string | undefined): Promise<void> {
  const expiresAt = new Date(untilMs).toISOString();
  return replacePrivateFile(path, JSON.stringify({ runId, token, expiresAt, holder }));
}
