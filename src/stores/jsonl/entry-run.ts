/** How many entries lie between two places of a log whose offsets are kept, unless they are long. */
const ANCHOR_ENTRIES = 16;
/** How many bytes may lie between two such places before another one is kept. */
const ANCHOR_BYTES = 32 * 1024;

/** A position in a log at which a line begins, and the line's offset in the file. */
export interface Anchor {
  readonly seq: number;
  readonly offset: number;
}

/**
 * The part of an entry's id that indexes keep: 24 bits. Two ids may share it, so a find is always checked in the
 * file.
 */
export function hashId(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) & 0xffffff;
}

/** Whether the offset of the line that begins with the entry at `seq` is worth keeping, after the last one that was. */
export function isAnchorDue(last: Anchor, seq: number, offset: number): boolean {
  return seq - last.seq >= ANCHOR_ENTRIES || offset - last.offset >= ANCHOR_BYTES;
}

/**
 * The entries of a piece of a log, in a few bytes each: what their ids hash to, and where some of their lines
 * begin.
 */
export class EntryRun {
  readonly from: Anchor;
  /** Not at `from` itself; ascending. */
  readonly anchors: Anchor[] = [];
  readonly hashes: number[] = [];
  #last: Anchor;
  #lineOffset: number;

  constructor(from: Anchor) {
    this.from = from;
    this.#last = from;
    this.#lineOffset = from.offset;
  }

  /** The position after the last entry. */
  get endSeq(): number {
    return this.from.seq + this.hashes.length;
  }

  add(hash: number, lineOffset: number): void {
    if (lineOffset !== this.#lineOffset) {
      this.#lineOffset = lineOffset;
      const seq = this.endSeq;
      if (isAnchorDue(this.#last, seq, lineOffset)) {
        this.#last = { seq, offset: lineOffset };
        this.anchors.push(this.#last);
      }
    }
    this.hashes.push(hash);
  }

  /** The part of the run from a place on. */
  rest(from: Anchor): EntryRun {
    const rest = new EntryRun(from);
    for (const hash of this.hashes.slice(from.seq - this.from.seq)) rest.hashes.push(hash);
    for (const anchor of this.anchors) if (anchor.seq > from.seq) rest.anchors.push(anchor);
    rest.#last = rest.anchors.at(-1) ?? from;
    rest.#lineOffset = Math.max(this.#lineOffset, from.offset);
    return rest;
  }

  /** The last kept place at or before a position. */
  anchorBefore(seq: number): Anchor | null {
    if (seq < this.from.seq) return null;
    const index = lastAtOrBefore(this.anchors.length, (at) => (this.anchors[at] as Anchor).seq, seq);
    return index < 0 ? this.from : (this.anchors[index] as Anchor);
  }

  /** The first kept place at or after a position. */
  anchorAfter(seq: number): Anchor | null {
    if (seq <= this.from.seq) return this.from;
    const index = lastAtOrBefore(this.anchors.length, (at) => (this.anchors[at] as Anchor).seq, seq - 1);
    return this.anchors[index + 1] ?? null;
  }
}

/** The index of the last of ascending values that is at most `limit`, or -1. */
export function lastAtOrBefore(length: number, valueAt: (index: number) => number, limit: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (valueAt(middle) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
