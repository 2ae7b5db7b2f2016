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

/** Where the files of a session are; a text as spec is the working directory. */
export interface FilesPlace {
  readonly backend: string;
  readonly spec?: SandboxSpec | SandboxPlacement["spec"] | string;
  readonly handleId?: string | null;
}

/** On whose behalf, and where the files of the session are; null for nowhere. */
export interface SessionFilesOptions extends ActorOptions {
  readonly placeOf: (header: SessionHeader) => FilesPlace | null;
}

/** Where a session stands after it went back, and the checkpoint that holds the files which it had before. */
export interface RestoredFiles {
  readonly state: SessionState;
  readonly kept: Checkpoint;
}

/**
 * Makes a checkpoint that holds the files of the session's place.
 *
 * @throws {SessionError} `NO_SANDBOX` when the session has no place whose files stay, `INVALID_OPTION` when they cannot be
 * held.
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
 * Goes back to a checkpoint with the files of the session's place. What they are now is held in another checkpoint first.
 * No run works in the session meanwhile.
 *
 * @throws {SessionBusyError} while a run goes on.
 * @throws {SessionError} as `checkpointWithFiles`, and `INVALID_OPTION` when the checkpoint holds no such files.
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
        throw noFiles(checkpoint, "holds files of another kind of place");
      const metadata = { note: `before going back to ${nameOf(checkpoint)}`, beforeRestoreOf: checkpointId };
      const kept = await manager.checkpoint(sessionId, { ...as, sandbox, metadata, spare: checkpointId });
      return { kept, state: await bringBack(manager, checkpoint, kept, { ...as, sandbox }) };
    });
  } finally {
    await hold.letGo();
  }
}

async function bringBack(
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
    // Nothing was changed then, so there is nothing to keep.
    await new CheckpointManager(manager.store).delete(kept.id);
    throw noFiles(checkpoint, "has lost its files");
  }
}

/** Opens the place of a session for as long as some work takes. */
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
      `The files of session ${id} do not outlive a run, as its ${name} sandbox has no directory that stays; leave them out.`,
    );
  }
  const opening = openSandbox({ backend: name, spec, handleId });
  const sandbox = await opening.opened;
  try {
    if (!sandbox.capabilities.snapshot) {
      throw new SessionError("INVALID_OPTION", `A ${name} sandbox cannot hold its files; leave them out.`);
    }
    await checkStoreIsElsewhere(store, sandbox);
    return await work(sandbox);
  } finally {
    await opening.release();
  }
}

/** A store that came back as it was would have lost what was said since, and whoever has it open would write to nowhere. */
async function checkStoreIsElsewhere({ capabilities: { path } }: SessionStore, sandbox: Sandbox): Promise<void> {
  if (path === undefined || sandbox.backend !== "local") return;
  const realPath = await withoutLinks(path);
  // The local backend leaves Skein's home alone.
  if (!isIn(realPath, sandbox.workingDir) || isIn(realPath, await withoutLinks(skeinHome()))) return;
  throw new SessionError(
    "INVALID_OPTION",
    "The sessions themselves are kept among these files; leave the files out, or keep the sessions elsewhere.",
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

/** What a checkpoint is called in the note of another; the notes that are made here would pile up in each other. */
function nameOf({ version, metadata: { note, beforeRestoreOf } }: Checkpoint): string {
  const named = typeof note === "string" && note.trim() !== "" && beforeRestoreOf === undefined;
  return named ? `"${note.slice(0, NOTE_CHARACTERS)}"` : `position ${version}`;
}
