import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateDirectory, openPrivateFile } from "../../internal/private-file.ts";
import { type FileStamp, type IndexBlock, parseBlock, parseRest } from "./index-block.ts";
import { NEWLINE } from "./log-line.ts";
import { readChunk, readLines, readLinesBackward } from "./read-lines.ts";

/** How many lines at the end of an index may be no blocks, as a crash leaves at most one, before it is given up. */
const BROKEN_LINES_MAX = 4;
const TAIL_BYTES = 4096;

/** The last block of an index file, the offset in that file after it, and the file's size. */
export interface IndexTail {
  readonly block: IndexBlock;
  readonly end: number;
  readonly size: number;
  /** How the log looked when it was last left in good order, as far as the index says. */
  readonly rest: FileStamp;
}

/** The last block of an index; null when there is no index, or none that can be read. */
export async function readLastBlock(path: string): Promise<IndexTail | null> {
  return withIndex(path, null, async (handle) => {
    const { size } = await handle.stat();
    const end = await lastLineEnd(handle, size);
    let left = BROKEN_LINES_MAX;
    let rest: FileStamp | null = null;
    for await (const lines of readLinesBackward(handle, end, 0)) {
      for (const { bytes, offset, length } of lines) {
        const text = bytes.toString("utf8");
        const block = parseBlock(text);
        if (block !== null) return { block, end: offset + length, size, rest: rest ?? block.stamp };
        rest ??= parseRest(text);
        if (--left === 0) return null;
      }
    }
    return null;
  });
}

/** The blocks of an index from its beginning on, as far as each begins where the one before it ends. */
export async function readBlocks(path: string): Promise<IndexBlock[]> {
  return withIndex(path, [], async (handle) => {
    const { size } = await handle.stat();
    const blocks: IndexBlock[] = [];
    for await (const lines of readLines(handle, 0, size)) {
      for (const { bytes } of lines) {
        const block = parseBlock(bytes.toString("utf8"));
        const before = blocks.at(-1);
        if (block === null || (before !== undefined && !follows(before, block))) return blocks;
        blocks.push(block);
      }
    }
    return blocks;
  });
}

/** The size of an index file; 0 when there is none. */
export async function indexSize(path: string): Promise<number> {
  return withIndex(path, 0, async (handle) => (await handle.stat()).size);
}

/** Writes blocks at an offset of an index file, in place of whatever stands there and after it. */
export async function writeBlocks(path: string, at: number, text: string): Promise<void> {
  const handle = await openForWriting(path);
  try {
    const { size } = await handle.stat();
    if (size > at) await handle.truncate(at);
    await handle.write(text, at, "utf8");
  } finally {
    await handle.close();
  }
}

function follows(before: IndexBlock, block: IndexBlock): boolean {
  return block.from.offset === before.end.offset && block.from.seq === before.end.seq;
}

async function withIndex<T>(path: string, missing: T, task: (handle: FileHandle) => Promise<T>): Promise<T> {
  let handle: FileHandle | null = null;
  try {
    handle = await open(path, "r");
    return await task(handle);
  } catch {
    // An index that cannot be read is as good as none: everything is in the log.
    return missing;
  } finally {
    await handle?.close();
  }
}

/** The offset after the last line end, which a crash may have left before the end of the file. */
async function lastLineEnd(handle: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - TAIL_BYTES);
    const newline = (await readChunk(handle, start, end - start)).lastIndexOf(NEWLINE);
    if (newline >= 0) return start + newline + 1;
    end = start;
  }
  return 0;
}

async function openForWriting(path: string): Promise<FileHandle> {
  await makePrivateDirectory(dirname(path));
  return openPrivateFile(path, constants.O_RDWR | constants.O_CREAT);
}
