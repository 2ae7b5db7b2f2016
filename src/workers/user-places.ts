import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { SessionError } from "../session/errors.ts";
import type { SandboxSpec } from "../session/sandbox/sandbox.ts";
import { checkBackendName, sandboxBackend } from "../session/sandbox/sandbox-backends.ts";

/** Where tools act; a text as spec is the working directory. */
export interface RunPlace {
  readonly backend: string;
  readonly spec?: SandboxSpec | string;
  /**
   * Whether each user has a directory of their own below the working directory, and commands that are kept apart from
   * everything else, as far as they run on this machine (default: yes; in a server, where it
   * has tokens). Without it, users share the place, and whoever may use tools can read what is another's.
   */
  readonly perUser?: boolean;
}

/** Where tools act in the sessions of a user that do not say so themselves; null for nowhere. */
export type PlaceOf = (userId: string | null) => RunPlace | null;

/** Where commands run at once on one machine, so that users have to be kept apart. */
const SHARED_BACKEND = "local";
/** Whoever cannot be kept apart gets no sandbox. */
const ISOLATION = "required";
/** A command of one user may not keep the machine from the others for longer, whatever a model asks for. */
const COMMAND_SECONDS = 120;

/**
 * The places of users: one for all, or on this machine one of their own for each, whose commands are kept apart from
 * everything else.
 *
 * @throws {SessionError} `INVALID_OPTION` for a place that makes no sense, `ISOLATION_MISSING` when users have to be kept
 * apart and this machine cannot do it.
 */
export async function openUserPlaces(place: RunPlace | undefined): Promise<PlaceOf> {
  if (place === undefined) return () => null;
  const { backend, perUser = true } = place;
  checkBackendName(backend);
  if (!perUser || backend !== SHARED_BACKEND) return () => place;
  const spec = typeof place.spec === "string" ? { workingDir: place.spec } : (place.spec ?? {});
  await checkIsolation();
  return (userId) => ({ backend, spec: specFor(userId, spec) });
}

/** The name of a user's directory, which says nothing of who they are and is no path, whatever their id is. */
export function userDirectoryName(userId: string): string {
  return `user-${createHash("sha256").update(userId).digest("hex").slice(0, 32)}`;
}

/** The directory that was made for a user alone; null where a place has none. */
export function ownDirectoryOf(place: RunPlace | null, userId: string): string | null {
  const spec = place?.spec;
  const directory = typeof spec === "object" ? spec.workingDir : undefined;
  // A directory of any other name was not made for them.
  const isOwn = place?.backend === SHARED_BACKEND && directory !== undefined;
  return isOwn && basename(directory) === userDirectoryName(userId) ? directory : null;
}

/** Removes a user's own directory with all that is in it, where they have one. */
export async function removeUserDirectory(place: RunPlace | null, userId: string): Promise<void> {
  const directory = ownDirectoryOf(place, userId);
  if (directory !== null) await rm(directory, { recursive: true, force: true });
}

function specFor(userId: string | null, { workingDir, ...spec }: SandboxSpec): SandboxSpec {
  const limits = { seconds: COMMAND_SECONDS, ...spec.limits };
  const isolated = { ...spec, limits, isolation: ISOLATION } as const;
  // Without a directory to share, every sandbox makes one of its own.
  if (workingDir === undefined) return isolated;
  const name = userId === null ? "nobody" : userDirectoryName(userId);
  return { ...isolated, workingDir: join(resolve(workingDir), name) };
}

async function checkIsolation(): Promise<void> {
  try {
    const sandbox = await (await sandboxBackend(SHARED_BACKEND)).open({ isolation: ISOLATION });
    await sandbox.close();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SessionError(
      "ISOLATION_MISSING",
      `Tools of several users need isolation, so that none reads what is another's: ${reason} Or serve without a place.`,
      { cause },
    );
  }
}
