import type { JsonObject } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { type FileChanges, type Sandbox, SandboxError } from "../../session/sandbox/sandbox.ts";
import { sandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { Checkpoint } from "../../session/store.ts";

/** What a checkpoint holds of a sandbox: its files at that moment, and the backend that keeps them. */
type HeldSnapshot = { readonly backend: string; readonly snapshot: JsonObject };

/** Keeps a sandbox's files as they are now, as what a checkpoint can hold. */
export async function holdSnapshot(sandbox: Sandbox): Promise<HeldSnapshot> {
  return { backend: sandbox.backend, snapshot: await sandbox.snapshot() };
}

/**
 * Brings a sandbox's files back to those that a checkpoint holds; without any, they stay as they are.
 *
 * @throws {SessionError} `INVALID_OPTION` when the checkpoint holds the files of another kind of sandbox.
 */
export async function bringBackFiles(checkpoint: Checkpoint, sandbox: Sandbox): Promise<void> {
  const held = heldBy(checkpoint);
  if (held === null) return;
  if (held.backend !== sandbox.backend) {
    throw new SessionError(
      "INVALID_OPTION",
      `Checkpoint ${show(checkpoint.id)} holds files of a ${held.backend} sandbox; open one of that kind to restore them.`,
    );
  }
  await sandbox.restore(held.snapshot);
}

/** The kind of sandbox whose files a checkpoint holds; null when it holds none. */
export function heldBackend(checkpoint: Checkpoint): string | null {
  return heldBy(checkpoint)?.backend ?? null;
}

/** Which files two checkpoints hold differently; null where that cannot be known. */
export async function compareHeld(from: Checkpoint, to: Checkpoint): Promise<FileChanges | null> {
  const [before, after] = [heldBy(from), heldBy(to)];
  if (before === null || after === null || before.backend !== after.backend) return null;
  // What another program registers may be missing here, and with it whoever could compare.
  const backend = await sandboxBackend(before.backend).catch(() => null);
  try {
    return (await backend?.compareSnapshots?.(before.snapshot, after.snapshot)) ?? null;
  } catch (error) {
    // A store that was copied from another machine has the names of snapshots that are not here.
    if (error instanceof SandboxError && error.kind === "file_not_found") return null;
    throw error;
  }
}

/** Frees the files that a checkpoint holds, where its backend keeps any that can be freed. */
export async function freeSnapshot(checkpoint: Pick<Checkpoint, "sandboxSnapshot">): Promise<void> {
  const held = heldBy(checkpoint);
  if (held === null) return;
  const backend = await sandboxBackend(held.backend);
  await backend.deleteSnapshot?.(held.snapshot);
}

/** A snapshot of another shape was put there by someone who knows what to do with it. */
function heldBy({ sandboxSnapshot }: Pick<Checkpoint, "sandboxSnapshot">): HeldSnapshot | null {
  if (!isObject(sandboxSnapshot)) return null;
  const { backend, snapshot } = sandboxSnapshot;
  return typeof backend === "string" && isObject(snapshot) ? { backend, snapshot } : null;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
