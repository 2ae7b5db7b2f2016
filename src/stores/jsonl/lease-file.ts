import { readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { hasEnded, parseProcessIdentity, thisProcess } from "../../internal/process-identity.ts";
import { SessionBusyError } from "../../session/errors.ts";
import type { LeaseInfo } from "../../session/store.ts";
import { missingAsNull } from "./log-file.ts";

/** The last lease of a session, live or not: the next one's token is larger. */
interface StoredLease {
  readonly runId: string;
  readonly token: number;
  readonly expiresAt: string;
  /** The process that took it, as text. */
  readonly holder?: string;
}

const HOLDER = JSON.stringify(thisProcess);

/** The live lease in a file, or null. */
export async function readLease(path: string, sessionId: string, now: Date): Promise<LeaseInfo | null> {
  const stored = await readStored(path);
  return stored === null || !isLive(stored, now) || isLeft(stored) ? null : infoOf(sessionId, stored);
}

/** The token of the lease in a file that has not run out, or null. */
export async function readToken(path: string, now: Date): Promise<number | null> {
  const stored = await readStored(path);
  return stored === null || !isLive(stored, now) ? null : stored.token;
}

/**
 * Takes the lease of a session; whoever calls must hold the session's lock, here and below.
 *
 * @throws {SessionBusyError} while a lease is live; that of a process which has ended is not.
 */
export async function acquireLease(
  path: string,
  sessionId: string,
  runId: string,
  now: Date,
  ttlMs: number,
): Promise<LeaseInfo> {
  const stored = await readStored(path);
  if (stored !== null && isLive(stored, now) && !isLeft(stored))
    throw new SessionBusyError(sessionId, `run ${stored.runId}`);
  const lease = { runId, token: (stored?.token ?? 0) + 1, expiresAt: timeAfter(now, ttlMs), holder: HOLDER };
  await writeStored(path, lease);
  return infoOf(sessionId, lease);
}

/** Holds a lease for longer. The new end, or null when the token is not the live one. */
export async function renewLease(path: string, token: number, now: Date, ttlMs: number): Promise<string | null> {
  const stored = await readStored(path);
  if (stored === null || stored.token !== token || !isLive(stored, now)) return null;
  const expiresAt = timeAfter(now, ttlMs);
  await writeStored(path, { ...stored, expiresAt });
  return expiresAt;
}

/** Ends a lease; without a token, whichever there is. */
export async function endLease(path: string, token: number | null, now: Date): Promise<void> {
  const stored = await readStored(path);
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

function timeAfter(now: Date, ms: number): string {
  return new Date(now.getTime() + ms).toISOString();
}

async function readStored(path: string): Promise<StoredLease | null> {
  const text = await readFile(path, "utf8").catch(missingAsNull);
  return text === null ? null : (JSON.parse(text) as StoredLease);
}

async function writeStored(path: string, lease: StoredLease): Promise<void> {
  await makePrivateDirectory(dirname(path));
  const temporary = `${path}.tmp`;
  await writePrivateFile(temporary, JSON.stringify(lease));
  await rename(temporary, path);
}
