import { link, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { openPrivateFile } from "../../../internal/private-file.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { makeParent, namedPath } from "../../../stores/named-path.ts";
import type { CommandValues } from "../../command.ts";

const BATCH_CHARACTERS = 64 * 1024;

/** Joins small pieces of text into larger batches to write. */
export async function* batches(
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let batch = "";
  for await (const piece of pieces) {
    signal.throwIfAborted();
    batch += piece;
    if (batch.length < BATCH_CHARACTERS) continue;
    yield batch;
    batch = "";
  }
  if (batch !== "") yield batch;
}

/** How to write a file that a command line names. */
export interface NewFileOptions {
  /** Replaces an existing file. */
  readonly replace?: boolean;
  /** Creates the directories above it. */
  readonly create?: boolean;
}

/** The options from `--force` and `--create`. */
export function writingOf(values: CommandValues): NewFileOptions {
  return { replace: values["force"] === true, create: values["create"] === true };
}

/** Writes a temporary file beside the file and renames it when it is complete. Resolves to the size in bytes. */
export async function writeNewFile(
  named: string,
  batches: AsyncIterable<string | Uint8Array>,
  { replace = false, create = false }: NewFileOptions = {},
): Promise<number> {
  const path = namedPath(named);
  if (!replace) await refuseExisting(path);
  await makeParent(path, { create, what: "the file" });
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    const handle = await openPrivateFile(temporary, "w");
    let bytes = 0;
    try {
      for await (const batch of batches) {
        await handle.appendFile(batch);
        bytes += Buffer.byteLength(batch);
      }
    } finally {
      await handle.close();
    }
    await (replace ? rename(temporary, path) : publish(temporary, path));
    return bytes;
  } catch (cause) {
    if (cause instanceof SessionError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    throw new SessionError("STORE_FAILED", `${show(path)} could not be written (${code}); it was not changed.`, {
      cause,
    });
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/** Uses a hard link, which never replaces a file that appeared meanwhile; renames if the file system has no links. */
async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST" || (await exists(path))) throw alreadyThere(path, cause);
    await rename(temporary, path);
  }
}

/** @throws {SessionError} `INVALID_OPTION` if the file exists. */
export async function refuseExisting(path: string): Promise<void> {
  if (await exists(path)) throw alreadyThere(path);
}

/** Whether a file or directory exists at the path. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function alreadyThere(path: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_OPTION", `${show(path)} already exists; give --force to replace it.`, { cause });
}
