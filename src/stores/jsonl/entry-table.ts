import { type Anchor, isAnchorDue, lastAtOrBefore } from "./entry-run.ts";

const CAPACITY_MIN = 256;

/** A piece of a log between two neighbouring places whose offsets are known. */
export interface Span {
  readonly seq: number;
  readonly offset: number;
  readonly endSeq: number;
  readonly endOffset: number;
}

/**
 * Finds the entries of a log by id and by position, in about 20 bytes an entry. It knows hashes, not ids: what it finds
 * are candidates.
 */
export class EntryTable {
  #count = 0;
  #end: number;
  #lineOffset: number;
  #hashes: Uint32Array;
  /** Open addressing: positions plus one, zero for a free place. */
  #slots: Uint32Array;
  readonly #anchorSeqs: number[] = [0];
  readonly #anchorOffsets: number[];

  /** A table of a log whose first entry's line begins at that offset, with room for a number of entries. */
  constructor(offset: number, count = 0) {
    const capacity = Math.max(CAPACITY_MIN, 2 ** Math.ceil(Math.log2(count + 1)));
    this.#hashes = new Uint32Array(capacity);
    this.#slots = new Uint32Array(capacity * 2);
    this.#end = offset;
    this.#lineOffset = offset;
    this.#anchorOffsets = [offset];
  }

  get count(): number {
    return this.#count;
  }

  /** The offset up to which the log is in the table. */
  get end(): number {
    return this.#end;
  }

  hashAt(seq: number): number {
    return this.#hashes[seq] as number;
  }

  /** Adds the next entry, whose line begins at that offset. */
  add(hash: number, lineOffset: number): void {
    if (lineOffset !== this.#lineOffset) {
      this.#lineOffset = lineOffset;
      if (isAnchorDue(this.#lastAnchor(), this.#count, lineOffset))
        this.#anchor({ seq: this.#count, offset: lineOffset });
    }
    this.#push(hash);
  }

  /** Adds the entries of a piece of the log, whose lines end at `end`. */
  addAll(hashes: Uint32Array, anchors: readonly Anchor[], end: number): void {
    for (const anchor of anchors) this.#anchor(anchor);
    for (const hash of hashes) this.#push(hash);
    this.#lineOffset = -1;
    this.#end = end;
  }

  #push(hash: number): void {
    if (this.#count === this.#hashes.length) this.#grow();
    this.#hashes[this.#count] = hash;
    this.#insert(hash, this.#count);
    this.#count += 1;
  }

  #lastAnchor(): Anchor {
    return { seq: this.#anchorSeqs.at(-1) as number, offset: this.#anchorOffsets.at(-1) as number };
  }

  #anchor({ seq, offset }: Anchor): void {
    if (seq === this.#anchorSeqs.at(-1)) return;
    this.#anchorSeqs.push(seq);
    this.#anchorOffsets.push(offset);
  }

  /** Says up to where in the file the entries reach. */
  endAt(offset: number): void {
    this.#end = offset;
  }

  /** The positions of entries with that hash. */
  *candidates(hash: number): Generator<number, undefined> {
    const mask = this.#slots.length - 1;
    // At most half of the places are taken, so there is a free one to stop at.
    for (let at = spread(hash) & mask; ; at = (at + 1) & mask) {
      const slot = this.#slots[at] as number;
      if (slot === 0) return;
      if (this.#hashes[slot - 1] === hash) yield slot - 1;
    }
  }

  /** Whether an entry with that hash may be there. */
  mayHave(hash: number): boolean {
    return !this.candidates(hash).next().done;
  }

  /** The piece of the log to read for the entry at a position. */
  spanOf(seq: number): Span {
    const index = this.#anchorIndex(seq);
    return {
      seq: this.#anchorSeqs[index] as number,
      offset: this.#anchorOffsets[index] as number,
      endSeq: this.#anchorSeqs[index + 1] ?? this.#count,
      endOffset: this.#anchorOffsets[index + 1] ?? this.#end,
    };
  }

  #anchorIndex(seq: number): number {
    return lastAtOrBefore(this.#anchorSeqs.length, (at) => this.#anchorSeqs[at] as number, seq);
  }

  #insert(hash: number, seq: number): void {
    const mask = this.#slots.length - 1;
    let at = spread(hash) & mask;
    while (this.#slots[at] !== 0) at = (at + 1) & mask;
    this.#slots[at] = seq + 1;
  }

  #grow(): void {
    const hashes = new Uint32Array(this.#hashes.length * 2);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    this.#slots = new Uint32Array(hashes.length * 2);
    for (let seq = 0; seq < this.#count; seq++) this.#insert(hashes[seq] as number, seq);
  }
}

/** Hashes have 24 bits; a table may have more places than that. */
function spread(hash: number): number {
  return Math.imul(hash, 0x9e3779b1) >>> 4;
}
