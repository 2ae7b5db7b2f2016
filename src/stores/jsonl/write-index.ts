import type { FileHandle } from "node:fs/promises";
import { hashId } from "./entry-run.ts";
import { checksum, CHECK_BYTES, type IndexBlock } from "./index-block.ts";
import { readLastBlock } from "./index-file.ts";
import { StaleView } from "./log-access.ts";
import { parseLine } from "./log-line.ts";
import type { LogState } from "./log-state.ts";
import { INDEX_TO_REPLACE, INDEX_UNKNOWN, PendingIndex } from "./pending-index.ts";
import { readChunk, readLines } from "./read-lines.ts";

/**
 * Writes to the index what it lacks: the blocks that are due and, before the log rests, one up to its end, or at
 * least how the log looks then. An index that cannot be written is left as it is, since it only saves time. Call it
 * under the log's lock.
 */
export async function writeIndex(
  state: LogState,
  handle: FileHandle,
  options: { readonly resting: boolean },
): Promise<void> {
  const { identity } = state;
  try {
    const { ino, size, mtimeMs } = await handle.stat();
    const log = { headerCheck: identity.headerCheck, stamp: { ino, size, mtimeMs } };
    const last = options.resting ? state.pending.lastCut(state) : null;
    if (last === null && !state.pending.due) return await state.pending.writeRest(identity.places.index, log.stamp);
    if (await state.pending.write(identity.places.index, last, log)) return;
    state.pending = await findPending(state, handle);
    const all = state.pending.lastCut(state);
    if (all !== null) await state.pending.write(identity.places.index, all, log);
  } catch {
    state.pending = new PendingIndex(state.end, INDEX_UNKNOWN);
  }
}

/** What the index lacks, when others have written to it or what it has is not known. */
async function findPending(state: LogState, handle: FileHandle): Promise<PendingIndex> {
  const { identity, end } = state;
  const last = await readLastBlock(identity.places.index);
  const pending =
    last !== null && (await isOf(last.block, state, handle))
      ? new PendingIndex(last.block.end, { at: last.end, size: last.size })
      : new PendingIndex({ seq: 0, offset: identity.headerEnd }, INDEX_TO_REPLACE);
  for await (const lines of readLines(handle, pending.run.from.offset, end.offset)) {
    for (const line of lines) {
      const entries = parseLine(line, pending.run.endSeq);
      if (typeof entries === "string") throw new StaleView(entries);
      for (const { id } of entries) pending.add(hashId(id), line.offset);
    }
  }
  if (pending.run.endSeq !== end.seq) throw new StaleView("The index does not fit the log.");
  return pending;
}

async function isOf(block: IndexBlock, { identity, size }: LogState, handle: FileHandle): Promise<boolean> {
  if (block.headerCheck !== identity.headerCheck || block.stamp.ino !== identity.ino || block.end.offset > size)
    return false;
  const start = Math.max(0, block.end.offset - CHECK_BYTES);
  return checksum(await readChunk(handle, start, block.end.offset - start)) === block.check;
}
