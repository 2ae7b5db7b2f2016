import { readFileSync } from "node:fs";
import { replacePrivateFile } from "../../internal/private-file.ts";
import { hasEnded, parseProcessIdentity, thisProcess } from "../../internal/process-identity.ts";
import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable } from "../../session/store-driver.ts";
import type { LeaseInfo } from "../../session/store.ts";
import type { Places } from "./places.ts";
import type { SessionFiles } from "./session-files.ts";
import { guarded, ifThere } from "./store-failure.ts";

/** The last lease of a session, live or not: the next one's token is larger. */
interface StoredLease {
  readonly runId: string;
  readonly token: number;
  readonly expiresAt: string;
  /** The process that took it, as text. */
  readonly holder?: string;
}

const HOLDER = JSON.stringify(thisProcess);

/** Leases that hold among all processes that use the directory. */
export function createFileLeases(files: SessionFiles): LeaseTable {
  const timeAfter = (ms: number): string => new Date(files.now().getTime() + ms).toISOString();
  /** Null where there is no such session. */
  const locked = <T>(sessionId: string, task: (places: Places) => Promise<T>): Promise<T | null> =>
    guarded(async () => (await files.live.find(sessionId))?.writer.exclusively(task) ?? null);
  return {
    async acquire(sessionId, runId, ttlMs) {
      files.checkWritable();
      const taken = await locked(sessionId, async ({ lease }) => {
        const stored = readStored(lease);
        if (stored !== null && isLive(stored, files.now()) && !isLeft(stored))
          throw new SessionBusyError(sessionId, `run ${stored.runId}`);
        const next = { runId, token: (stored?.token ?? 0) + 1, expiresAt: timeAfter(ttlMs), holder: HOLDER };
        await writeStored(lease, next);
        return infoOf(sessionId, next);
      });
      if (taken === null) throw new SessionNotFoundError(sessionId);
      return taken;
    },
    renew: (sessionId, token, ttlMs) =>
      locked(sessionId, async ({ lease }) => {
        const stored = readStored(lease);
        if (stored === null || stored.token !== token || !isLive(stored, files.now())) return null;
        const expiresAt = timeAfter(ttlMs);
        await writeStored(lease, { ...stored, expiresAt });
        return expiresAt;
      }),
    async release(sessionId, token) {
      await locked(sessionId, ({ lease }) => endLease(lease, token, files.now()));
    },
    current: (sessionId) =>
      guarded(async () => {
        const file = await files.live.find(sessionId);
        return file === null ? null : readLease(file.places.lease, sessionId, files.now());
      }),
  };
}

/** The live lease in a file, or null. */
export function readLease(path: string, sessionId: string, now: Date): LeaseInfo | null {
  const stored = readStored(path);
  return stored === null || !isLive(stored, now) || isLeft(stored) ? null : infoOf(sessionId, stored);
}

/** The token of the lease in a file that has not run out, or null. */
export function readToken(path: string, now: Date): number | null {
  const stored = readStored(path);
  return stored === null || !isLive(stored, now) ? null : stored.token;
}

/** Ends a lease; without a token, whichever there is. Call it under the session's lock. */
export async function endLease(path: string, token: number | null, now: Date): Promise<void> {
  const stored = readStored(path);
  if (stored === null || !isLive(stored, now) || (token !== null && stored.token !== token)) return;
  await writeStored(path, { ...stored, expiresAt: now.toISOString() });
}

function isLive({ expiresAt }: StoredLease, now: Date): boolean {
  return expiresAt > now.toISOString();
}

/** Whether the process that took a lease has ended without giving it back. */
function isLeft({ holder }: StoredLease): boolean {
  const identity = parseProcessIdentity(holder);
  return identity !== null && hasEnded(identity);
}

function infoOf(sessionId: string, { runId, token, expiresAt }: StoredLease): LeaseInfo {
  return { sessionId, runId, token, expiresAt };
}

function readStored(path: string): StoredLease | null {
  const text = ifThere(() => readFileSync(path, "utf8"));
  return text === null ? null : (JSON.parse(text) as StoredLease);
}

async function writeStored(path: string, lease: StoredLease): Promise<void> {
  await replacePrivateFile(path, JSON.stringify(lease));
}
