import { type Anchor, EntryRun } from "./entry-run.ts";
import { type BlockCut, type FileStamp, formatBlock, formatRest } from "./index-block.ts";
import { indexSize, writeBlocks } from "./index-file.ts";

/** After how many bytes of log a block is due. */
const BLOCK_BYTES = 512 * 1024;
/** The least that a block covers; the index of less than that costs more than it saves. */
const BLOCK_BYTES_MIN = 256 * 1024;
/**
 * How many times larger the piece of log that a block covers must be than what the block carries, which is mostly the
 * settings where there are many.
 */
const BYTES_PER_HEAD_BYTE = 4;

/** Where an index file ends. */
export interface IndexEnd {
  /** The offset at which the next block belongs. */
  readonly at: number;
  /** The size of the file, which is larger when a crash cut a block short; null when it does not matter. */
  readonly size: number | null;
}

/** Says that what is pending is all of the log, so that it takes the place of whatever index there is. */
export const INDEX_TO_REPLACE: IndexEnd = { at: 0, size: null };

/** Says that nobody knows what the index has. */
export const INDEX_UNKNOWN: IndexEnd = { at: -1, size: -1 };

/** What the index does not have yet: the entries after its last block, and where further blocks can end. */
export class PendingIndex {
  #run: EntryRun;
  #cuts: BlockCut[] = [];
  #from: Anchor;
  #dueAt: number;
  #file: IndexEnd;

  constructor(from: Anchor, file: IndexEnd) {
    this.#run = new EntryRun(from);
    this.#from = from;
    this.#dueAt = from.offset + BLOCK_BYTES;
    this.#file = file;
  }

  /** The entries that are not in the index. */
  get run(): EntryRun {
    return this.#run;
  }

  /** Whether a block has become due since the last write. */
  get due(): boolean {
    return this.#cuts.length > 0;
  }

  /** Where a last block is to end before the log rests: half of one is worth it already. Null where it is not. */
  lastCut(log: { readonly size: number; readonly cut: BlockCut }): BlockCut | null {
    const covered = log.size - this.#from.offset;
    if (covered < Math.max(BLOCK_BYTES_MIN, (this.#dueAt - this.#from.offset) / 2)) return null;
    const { cut } = log;
    if (covered >= bytesFor(cut) / 2) return cut;
    this.#putOff(cut);
    return null;
  }

  add(hash: number, lineOffset: number): void {
    this.#run.add(hash, lineOffset);
  }

  /** Whether a block is to end at this offset, where a line does. */
  isCutDue(offset: number): boolean {
    return offset >= this.#dueAt;
  }

  /** Ends a block, unless what it carries is too large for so short a piece of log: then it ends later. */
  cut(cut: BlockCut): void {
    if (cut.end.offset - this.#from.offset < bytesFor(cut)) {
      this.#putOff(cut);
      return;
    }
    this.#cuts.push(cut);
    this.#from = cut.end;
    this.#dueAt = cut.end.offset + BLOCK_BYTES;
  }

  /** What a block carries grows with the log, and to find out how large it is takes time: it is not tried at once again. */
  #putOff(cut: BlockCut): void {
    this.#dueAt = Math.max(this.#from.offset + bytesFor(cut), cut.end.offset + BLOCK_BYTES_MIN);
  }

  /**
   * Writes the blocks that are due, and a last one up to `last`. Resolves to false when the index file is not the
   * one that the blocks continue. Call it under the log's lock.
   */
  async write(
    path: string,
    last: BlockCut | null,
    log: { readonly headerCheck: number; readonly stamp: FileStamp },
  ): Promise<boolean> {
    if (this.#file.size !== null && (await indexSize(path)) !== this.#file.size) return false;
    const cuts = last !== null && last.end.offset > this.#from.offset ? [...this.#cuts, last] : this.#cuts;
    let from = this.#run.from;
    let text = "";
    for (const cut of cuts) {
      text += formatBlock(this.#run, from, cut, log);
      from = cut.end;
    }
    await writeBlocks(path, this.#file.at, text);
    const at = this.#file.at + Buffer.byteLength(text);
    this.#file = { at, size: at };
    this.#run = this.#run.rest(from);
    this.#cuts = [];
    this.#from = from;
    this.#dueAt = from.offset + BLOCK_BYTES;
    return true;
  }

  /**
   * Notes how the log looks now that nobody writes to it, so that a change in place is noticed. Needs the log's
   * lock.
   */
  async writeRest(path: string, stamp: FileStamp): Promise<void> {
    // Without a block, nothing is taken from the index anyway.
    if (this.#file.at <= 0 || (await indexSize(path)) !== this.#file.size) return;
    const text = formatRest(stamp);
    await writeBlocks(path, this.#file.at, text);
    this.#file = { at: this.#file.at, size: this.#file.at + text.length };
  }
}

/** How many bytes of log a block must cover, for what it carries. */
function bytesFor({ head: { header: _, ...head }, settings }: BlockCut): number {
  return JSON.stringify({ head, settings }).length * BYTES_PER_HEAD_BYTE;
}
