import { realpath } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import { LeaseHold } from "../../agent/persist/lease-hold.ts";
import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { statusError } from "../../session/log/append-guard.ts";
import { CheckpointNotFoundError, SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { SandboxPlacement, SessionHeader } from "../../session/log/header.ts";
import { sandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import { openSandbox } from "../../session/sandbox/sandbox-opening.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import type { SessionState } from "../../session/state/state.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { skeinHome } from "../../tree/home.ts";
import type { ActorOptions } from "../access.ts";
import { CheckpointManager } from "./checkpoint-manager.ts";
import { heldBackend } from "./held-snapshot.ts";
import type { SessionManager } from "../session-manager.ts";

const NOTE_CHARACTERS = 80;

/** The place of a session's files; a text as `spec` is the working directory. */
export interface FilesPlace {
  readonly backend: string;
  readonly spec?: SandboxSpec | SandboxPlacement["spec"] | string;
  readonly handleId?: string | null;
}

/** The user who acts, and the place of the session's files; each null if there is none. */
export interface SessionFilesOptions extends ActorOptions {
  readonly placeOf: (header: SessionHeader) => FilesPlace | null;
}

/** A session after a restore, and the checkpoint with the files from before it. */
export interface RestoredFiles {
  readonly state: SessionState;
  readonly kept: Checkpoint;
}

/**
 * Creates a checkpoint with the files of the session's place.
 *
 * @throws {SessionError} `NO_SANDBOX` if the session has no place with persistent files, `INVALID_OPTION` if they cannot be part
 * of a snapshot.
 */
export async function checkpointWithFiles(
  manager: SessionManager,
  sessionId: string,
  { placeOf, metadata = {}, ...as }: SessionFilesOptions & { readonly metadata?: JsonObject },
): Promise<Checkpoint> {
  const head = await manager.head(sessionId, as);
  if (head === null) throw new SessionNotFoundError(sessionId);
  return inPlace(manager, head.header, placeOf, (sandbox) =>
    manager.checkpoint(sessionId, { ...as, metadata, sandbox }),
  );
}

/**
 * Restores a checkpoint with the files of the session's place. The present files are saved in another checkpoint first. A lease
 * keeps runs out of the session meanwhile.
 *
 * @throws {SessionBusyError} while a run is active.
 * @throws {SessionError} as `checkpointWithFiles`, and `INVALID_OPTION` if the checkpoint holds no such files.
 */
export async function restoreWithFiles(
  manager: SessionManager,
  checkpointId: string,
  { placeOf, ...as }: SessionFilesOptions,
): Promise<RestoredFiles> {
  const checkpoint = await manager.store.loadCheckpoint(checkpointId);
  const head = checkpoint && (await manager.head(checkpoint.sessionId, as));
  if (checkpoint === null || head === null) throw new CheckpointNotFoundError(checkpointId);
  const { sessionId } = checkpoint;
  if (head.status !== "active") throw statusError(sessionId, head.status);
  if (heldBackend(checkpoint) === null) throw noFiles(checkpoint, "holds no files");
  const hold = await LeaseHold.take(manager.store, sessionId, `restore-${uuidv7()}`);
  try {
    return await inPlace(manager, head.header, placeOf, async (sandbox) => {
      if (heldBackend(checkpoint) !== sandbox.backend)
        throw noFiles(checkpoint, "holds files of another kind of sandbox");
      const metadata = { note: `before going back to ${nameOf(checkpoint)}`, beforeRestoreOf: checkpointId };
      const kept = await manager.checkpoint(sessionId, { ...as, sandbox, metadata, spare: checkpointId });
      return { kept, state: await restoreOrUndo(manager, checkpoint, kept, { ...as, sandbox }) };
    });
  } finally {
    await hold.letGo();
  }
}

async function restoreOrUndo(
  manager: SessionManager,
  checkpoint: Checkpoint,
  kept: Checkpoint,
  options: ActorOptions & { readonly sandbox: Sandbox },
): Promise<SessionState> {
  try {
    return await manager.restore(checkpoint.id, { ...options, turns: false });
  } catch (error) {
    const gone = error instanceof SandboxError && error.kind === "file_not_found";
    if (!gone) throw error;
    // Nothing was changed, so the saved files are not needed.
    await new CheckpointManager(manager.store).delete(kept.id);
    throw noFiles(checkpoint, "has lost its files");
  }
}

/** Opens the place of a session while a function runs. */
async function inPlace<T>(
  { store }: SessionManager,
  header: SessionHeader,
  placeOf: SessionFilesOptions["placeOf"],
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const place = placeOf(header);
  const id = show(header.id);
  if (place === null) throw new SessionError("NO_SANDBOX", `Session ${id} has no place for files; leave them out.`);
  const { backend: name, handleId = null } = place;
  const spec = (typeof place.spec === "string" ? { workingDir: place.spec } : (place.spec ?? {})) as SandboxSpec;
  if ((await sandboxBackend(name)).keepsFiles?.(spec) !== true) {
    throw new SessionError(
      "NO_SANDBOX",
      `The files of session ${id} are deleted after each run, because its ${name} sandbox has no persistent directory; leave them out.`,
    );
  }
  const opening = openSandbox({ backend: name, spec, handleId });
  const sandbox = await opening.opened;
  try {
    if (!sandbox.capabilities.snapshot) {
      throw new SessionError("INVALID_OPTION", `A ${name} sandbox has no snapshots; leave the files out.`);
    }
    await checkStoreIsElsewhere(store, sandbox);
    return await work(sandbox);
  } finally {
    await opening.release();
  }
}

/**
 * Refuses a store inside of the restored directory: a restore would undo its latest appends, and processes that have it open
 * would write to deleted files.
 */
async function checkStoreIsElsewhere({ capabilities: { path } }: SessionStore, sandbox: Sandbox): Promise<void> {
  if (path === undefined || sandbox.backend !== "local") return;
  const realPath = await withoutLinks(path);
  // Snapshots of the local backend leave out Skein's home.
  if (!isIn(realPath, sandbox.workingDir) || isIn(realPath, await withoutLinks(skeinHome()))) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The session store is in this directory; leave the files out, or keep the store elsewhere.",
  );
}

async function withoutLinks(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

function isIn(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function noFiles({ id }: Checkpoint, why: string): SessionError {
  return new SessionError("INVALID_OPTION", `Checkpoint ${show(id)} ${why}; restore it without files.`);
}

/** The name of a checkpoint in the note of another one. Notes made here are not quoted, or they would nest. */
function nameOf({ version, metadata: { note, beforeRestoreOf } }: Checkpoint): string {
  const named = typeof note === "string" && note.trim() !== "" && beforeRestoreOf === undefined;
  return named ? `"${note.slice(0, NOTE_CHARACTERS)}"` : `position ${version}`;
}
