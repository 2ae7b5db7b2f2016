import { type FileHandle, open } from "node:fs/promises";
import { SessionDamagedError } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { RawLine } from "./log-line.ts";
import type { Places } from "./places.ts";
import { countLines } from "./read-lines.ts";

/** What is known of a log does not fit its file any more, or its index did not: it must be loaded anew. */
export class StaleView extends Error {}

/** Which file a log is, and what its first line is. */
export interface LogIdentity {
  readonly places: Places;
  readonly header: SessionHeader;
  readonly ino: number;
  /** Where the first line ends. */
  readonly headerEnd: number;
  /** A checksum of the first line. */
  readonly headerCheck: number;
}

/**
 * Opens a log's file for reading, runs the task, and closes it. @throws {StaleView} when another file is in its
 * place.
 */
export async function withLog<T>(identity: LogIdentity, task: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await openLog(identity);
  try {
    return await task(handle);
  } finally {
    await handle.close();
  }
}

/** A log's file, opened for reading. @throws {StaleView} when another file is in its place. */
export async function openLog({ places, ino }: LogIdentity): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(places.log, "r");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new StaleView("The log's file is gone.", { cause });
    throw cause;
  }
  try {
    if ((await handle.stat()).ino !== ino) throw new StaleView("Another file is in the log's place.");
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The error for a line that was met while reading, not while counting lines. */
export async function damageAt(
  handle: FileHandle,
  path: string,
  line: RawLine,
  reason: string,
): Promise<SessionDamagedError> {
  const before = await countLines(handle, line.offset);
  return new SessionDamagedError({ path, line: before + 1, offset: line.offset, reason });
}
