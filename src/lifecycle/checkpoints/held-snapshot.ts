import { checkArgument } from "../../session/check-arguments.ts";
import type { JsonObject } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { type FileChanges, type Sandbox, SandboxError } from "../../session/sandbox/sandbox.ts";
import { sandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { Checkpoint } from "../../session/store.ts";

/** The snapshot in a checkpoint, and the sandbox backend that stores it. */
type HeldSnapshot = { readonly backend: string; readonly snapshot: JsonObject };

/** Takes a snapshot of a sandbox's files, for a checkpoint. */
export async function takeSnapshot(sandbox: Sandbox): Promise<HeldSnapshot> {
  checkArgument(typeof sandbox?.snapshot === "function", sandbox, "checkpoint", "an open sandbox in sandbox");
  return { backend: sandbox.backend, snapshot: await sandbox.snapshot() };
}

/**
 * Restores a sandbox's files from a checkpoint; without a snapshot in it, they stay unchanged.
 *
 * @throws {SessionError} `INVALID_OPTION` if the snapshot is of another kind of sandbox.
 */
export async function restoreFiles(checkpoint: Checkpoint, sandbox: Sandbox): Promise<void> {
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

/** The kind of sandbox whose files a checkpoint holds; null if it holds none. */
export function heldBackend(checkpoint: Checkpoint): string | null {
  return heldBy(checkpoint)?.backend ?? null;
}

/** The files that differ between the snapshots of two checkpoints; null if they cannot be compared. */
export async function compareSnapshots(from: Checkpoint, to: Checkpoint): Promise<FileChanges | null> {
  const [before, after] = [heldBy(from), heldBy(to)];
  if (before === null || after === null || before.backend !== after.backend) return null;
  // A backend that another program registers may be missing here.
  const backend = await sandboxBackend(before.backend).catch(() => null);
  try {
    return (await backend?.compareSnapshots?.(before.snapshot, after.snapshot)) ?? null;
  } catch (error) {
    // In a store that was copied from another machine, the snapshots are missing.
    if (error instanceof SandboxError && error.kind === "file_not_found") return null;
    throw error;
  }
}

/** Deletes the snapshot of a checkpoint, if its backend can delete snapshots. */
export async function freeSnapshot(checkpoint: Pick<Checkpoint, "sandboxSnapshot">): Promise<void> {
  const held = heldBy(checkpoint);
  if (held === null) return;
  const backend = await sandboxBackend(held.backend);
  await backend.deleteSnapshot?.(held.snapshot);
}

/** A snapshot of another shape belongs to a program that handles it itself. */
function heldBy({ sandboxSnapshot }: Pick<Checkpoint, "sandboxSnapshot">): HeldSnapshot | null {
  if (!isObject(sandboxSnapshot)) return null;
  const { backend, snapshot } = sandboxSnapshot;
  return typeof backend === "string" && isObject(snapshot) ? { backend, snapshot } : null;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
