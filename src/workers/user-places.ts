import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { SessionError } from "../session/errors.ts";
import type { SandboxSpec } from "../session/sandbox/sandbox.ts";
import { checkBackendName, sandboxBackend } from "../session/sandbox/sandbox-backends.ts";

/** Where tools act; a string as spec is the working directory. */
export interface RunPlace {
  readonly backend: string;
  readonly spec?: SandboxSpec | string;
  /**
   * Whether each user gets a private directory below the working directory and isolated commands, if commands run on
   * this machine (default: yes; in a server, if it has tokens). Without it, users share the directory, and everyone
   * with tools can read the files of others.
   */
  readonly perUser?: boolean;
}

/** Returns the sandbox placement for sessions of a user without their own; null for none. */
export type PlaceOf = (userId: string | null) => RunPlace | null;

/** The backend whose commands run on this machine, so that users must be isolated. */
const SHARED_BACKEND = "local";
/** A user whose commands cannot be isolated gets no sandbox. */
const ISOLATION = "required";
/** The time limit of one user's command, whatever a model requests, because commands share the machine. */
const COMMAND_SECONDS = 120;

/**
 * The sandbox placements of users: a shared one, or on this machine a private one for each user with isolated commands.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid place, `ISOLATION_MISSING` if users must be isolated and this
 * machine cannot do that.
 */
export async function openUserPlaces(place: RunPlace | undefined): Promise<PlaceOf> {
  if (place === undefined) return () => null;
  checkOptionsOf(place, { backend: true, spec: true, perUser: true } satisfies KeysOf<RunPlace>, "place");
  const { backend, perUser = true } = place;
  checkBackendName(backend);
  await checkSpec(place);
  if (!perUser || backend !== SHARED_BACKEND) return () => place;
  const spec = typeof place.spec === "string" ? { workingDir: place.spec } : (place.spec ?? {});
  await checkIsolation();
  return (userId) => ({ backend, spec: specFor(userId, spec) });
}

/** @throws {SessionError} `INVALID_OPTION` for a spec that the backend refuses, with which no run could use its tools. */
async function checkSpec({ backend, spec = {} }: RunPlace): Promise<void> {
  try {
    await (await sandboxBackend(backend)).reach?.(typeof spec === "string" ? { workingDir: spec } : spec);
  } catch (error) {
    if (error instanceof SessionError && error.code === "INVALID_OPTION") throw error;
    // What is missing now, such as a package or a server, may be there when a run needs it.
  }
}

/** The name of a user's directory: reveals nothing about the user, and is safe as a path for any id. */
export function userDirectoryName(userId: string): string {
  return `user-${createHash("sha256").update(userId).digest("hex").slice(0, 32)}`;
}

/** The private directory of a user; null if a place has none. */
export function ownDirectoryOf(place: RunPlace | null, userId: string): string | null {
  const spec = place?.spec;
  const directory = typeof spec === "object" ? spec.workingDir : undefined;
  // A directory with another name is not the user's private one.
  const isOwn = place?.backend === SHARED_BACKEND && directory !== undefined;
  return isOwn && basename(directory) === userDirectoryName(userId) ? directory : null;
}

/** Removes a user's private directory with its contents, if there is one. */
export async function removeUserDirectory(place: RunPlace | null, userId: string): Promise<void> {
  const directory = ownDirectoryOf(place, userId);
  if (directory !== null) await rm(directory, { recursive: true, force: true });
}

function specFor(userId: string | null, { workingDir, ...spec }: SandboxSpec): SandboxSpec {
  const limits = { seconds: COMMAND_SECONDS, ...spec.limits };
  const isolated = { ...spec, limits, isolation: ISOLATION } as const;
  // Without a shared directory, every sandbox creates its own.
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
