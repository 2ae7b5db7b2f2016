import { isUtf8 } from "node:buffer";
import { WorkSlices } from "../internal/work-slices.ts";
import { type Sandbox, SandboxError } from "../session/sandbox/sandbox.ts";

/** Files up to this size are read without a limit on concurrency. */
const SMALL_BYTES_MAX: number = 1024 * 1024;
/** How many larger files may be in memory at the same time, over all runs of this process. */
const LARGE_FILES_MAX = 2;

const NEWLINE = 0x0a;
const SLICE_BYTES: number = 1024 * 1024;

let largeFiles = 0;
const waiting: (() => void)[] = [];

/**
 * Reads a file and calls `use` with its bytes. Large files are queued and read a few at a time, so that a hundred calls do not
 * hold a hundred files in memory.
 *
 * @throws {SandboxError} `output_truncated` for a file larger than `bytesMax`.
 */
export async function withFileBytes<T>(
  sandbox: Sandbox,
  path: string,
  { bytesMax, signal }: { readonly bytesMax: number; readonly signal: AbortSignal },
  use: (bytes: Uint8Array) => T | Promise<T>,
): Promise<T> {
  let small: Uint8Array;
  try {
    small = await sandbox.readFile(path, { bytesMax: Math.min(bytesMax, SMALL_BYTES_MAX) });
  } catch (error) {
    const isLarger = error instanceof SandboxError && error.kind === "output_truncated" && bytesMax > SMALL_BYTES_MAX;
    if (!isLarger) throw error;
    return withLargeFile(async () => {
      signal.throwIfAborted();
      return use(await sandbox.readFile(path, { bytesMax }));
    });
  }
  return use(small);
}

async function withLargeFile<T>(work: () => Promise<T>): Promise<T> {
  if (largeFiles < LARGE_FILES_MAX) largeFiles += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    // The next waiter takes over the slot.
    if (next === undefined) largeFiles -= 1;
    else next();
  }
}

/** Whether bytes are UTF-8 text. Bytes with a NUL are valid UTF-8 but count as binary. */
export function isText(bytes: Uint8Array): boolean {
  return !bytes.includes(0) && isUtf8(bytes);
}

/** A range of lines in a text file. A newline at the end of the file does not begin another line. */
export interface LineRange {
  readonly total: number;
  /** The start of the first wanted line; the end of the file if there is no such line. */
  readonly from: number;
  /** The end of the last wanted line, without its newline. */
  readonly to: number;
}

/** Finds lines by their numbers, counted from 1, without decoding the others. */
export async function findLines(bytes: Uint8Array, start: number, count: number): Promise<LineRange> {
  const slices = new WorkSlices();
  let [lines, from, to] = [0, start === 1 ? 0 : bytes.length, bytes.length];
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    const end = Math.min(at + SLICE_BYTES, bytes.length);
    for (let index = at; index < end; index++) {
      if (bytes[index] !== NEWLINE) continue;
      lines += 1;
      if (lines === start - 1) from = index + 1;
      if (lines === start - 1 + count) to = index;
    }
    await slices.pause();
  }
  const isEnded = bytes.at(-1) === NEWLINE;
  return { total: isEnded ? lines : lines + 1, from, to: isEnded ? Math.min(to, bytes.length - 1) : to };
}

/** The number of UTF-16 units in a UTF-8 text. */
export async function countCharacters(bytes: Uint8Array): Promise<number> {
  const slices = new WorkSlices();
  const decoder = new TextDecoder();
  let characters = 0;
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    characters += decoder.decode(bytes.subarray(at, at + SLICE_BYTES), { stream: true }).length;
    await slices.pause();
  }
  return characters;
}
