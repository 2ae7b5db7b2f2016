import { link, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { openPrivateFile } from "../../../internal/private-file.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { makeParent, namedPath } from "../../../stores/named-path.ts";
import type { CommandValues } from "../../command.ts";

const BATCH_CHARACTERS = 64 * 1024;

/** The same text in pieces that are worth writing. */
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

/** How a file is written that a command line names. */
export interface NewFileOptions {
  /** Takes the place of a file that is there. */
  readonly replace?: boolean;
  /** Makes the directories above it. */
  readonly create?: boolean;
}

/** What `--force` and `--create` say of the file to write. */
export function writingOf(values: CommandValues): NewFileOptions {
  return { replace: values["force"] === true, create: values["create"] === true };
}

/** Writes beside the file and renames it when it is whole. Resolves to how many bytes it has. */
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
    throw new SessionError("STORE_FAILED", `${show(path)} could not be written (${code}); it is as it was.`, { cause });
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/** A link never replaces a file that came in the meantime; not every file system has links. */
async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST" || (await exists(path))) throw alreadyThere(path, cause);
    await rename(temporary, path);
  }
}

/** @throws {SessionError} `INVALID_OPTION` when the file is there. */
export async function refuseExisting(path: string): Promise<void> {
  if (await exists(path)) throw alreadyThere(path);
}

/** Whether there is such a file. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function alreadyThere(path: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_OPTION", `${show(path)} is there already; give --force to replace it.`, { cause });
}
