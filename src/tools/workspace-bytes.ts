import { isUtf8 } from "node:buffer";
import { WorkSlices } from "../internal/work-slices.ts";
import { type Sandbox, SandboxError } from "../session/sandbox/sandbox.ts";

/** A file up to this size is read at once, however many others are. */
const SMALL_BYTES_MAX: number = 1024 * 1024;
/** How many larger files are in memory at once, of all runs of this process. */
const LARGE_FILES_MAX = 2;

const NEWLINE = 0x0a;
const SLICE_BYTES: number = 1024 * 1024;

let largeFiles = 0;
const waiting: (() => void)[] = [];

/**
 * Reads a file and does something with its bytes. Large files are read a few at a time, in the order of their calls, so
 * that a hundred calls do not hold a hundred files in memory.
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
    // Whoever waits takes over the place.
    if (next === undefined) largeFiles -= 1;
    else next();
  }
}

/** Whether bytes are UTF-8 text. It may hold a NUL by the letter of UTF-8, but no file that a model should read as text does. */
export function isText(bytes: Uint8Array): boolean {
  return !bytes.includes(0) && isUtf8(bytes);
}

/** The lines of a text file: how many there are, and where some of them are. An end of line at the end begins no further one. */
export interface LineRange {
  readonly total: number;
  /** Where the first wanted line begins; the end of the file where there is none. */
  readonly from: number;
  /** Where the last wanted line ends, without its end of line. */
  readonly to: number;
}

/** Finds lines by their numbers, from 1, without making anything of the others. */
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

/** How many characters (UTF-16 units) some UTF-8 text has. */
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
