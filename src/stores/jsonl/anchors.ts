import type { Anchor } from "./log-index.ts";

/** How many entries lie between two places of a log that are kept, unless they are long. */
const ENTRIES_BETWEEN = 16;
const BYTES_BETWEEN = 32 * 1024;

/** Places of a log at which lines begin, at intervals, so that an entry is found by its position. */
export class Anchors {
  readonly #places: Anchor[];

  /** `first` is where the first entry stands. */
  constructor(first: Anchor) {
    this.#places = [first];
  }

  /** Keeps a place, unless there is one shortly before it. */
  add(place: Anchor): void {
    const index = this.#lastUpTo(place.seq);
    const before = this.#places[index] as Anchor;
    if (place.seq - before.seq < ENTRIES_BETWEEN && place.offset - before.offset < BYTES_BETWEEN) return;
    if (place.seq !== before.seq) this.#places.splice(index + 1, 0, place);
  }

  /** The last place at or before a position. */
  before(seq: number): Anchor {
    return this.#places[this.#lastUpTo(seq)] as Anchor;
  }

  /** The first place at or after a position; null where none is kept. */
  after(seq: number): Anchor | null {
    return this.#places[this.#lastUpTo(seq - 1) + 1] ?? null;
  }

  #lastUpTo(seq: number): number {
    let high = this.#places.length;
    // Nearly always the place is at the end, as that is where a log grows.
    let low = (this.#places[high - 1] as Anchor).seq <= seq ? high : 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#places[middle] as Anchor).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
