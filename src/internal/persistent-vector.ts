const BITS = 5;
const WIDTH = 1 << BITS;
const MASK = WIDTH - 1;

type Node = readonly unknown[];

/**
 * An immutable list. Appending returns a new list that shares nearly all of its memory with the old one.
 *
 * Items are in blocks of 32 under a tree with 32 branches for each node. So an append or a look-up costs O(log32 n), and any
 * number of lists can be made by appending to the same one.
 */
export class PersistentVector<T> {
  readonly length: number;
  readonly #depth: number;
  readonly #root: Node;
  readonly #tail: readonly T[];

  private constructor(length: number, depth: number, root: Node, tail: readonly T[]) {
    this.length = length;
    this.#depth = depth;
    this.#root = root;
    this.#tail = tail;
  }

  static empty<T>(): PersistentVector<T> {
    return new PersistentVector<T>(0, 1, [], []);
  }

  at(index: number): T | undefined {
    if (index < 0 || index >= this.length || !Number.isInteger(index)) return undefined;
    return this.#blockAt(index)[index & MASK];
  }

  append(items: Iterable<T>): PersistentVector<T> {
    let { length } = this;
    let depth = this.#depth;
    let root = this.#root;
    let tail = [...this.#tail];
    for (const item of items) {
      if (tail.length === WIDTH) {
        [root, depth] = grow(root, depth, (length >>> BITS) - 1, tail);
        tail = [];
      }
      tail.push(item);
      length++;
    }
    return length === this.length ? this : new PersistentVector(length, depth, root, tail);
  }

  /**
   * All items in a few parts, in order. Lists that were made from one another share the `key` of a common part, so that
   * results for a part can be cached by its key.
   */
  *parts(): Generator<VectorPart<T>, void, undefined> {
    let node = this.#root;
    for (let depth = this.#depth; depth > 0 && node.length > 0; depth--) {
      const last = node.length - 1;
      // Skip the last branch: an append copies it, so lists do not share it.
      const whole = depth === 1 ? node : node.slice(0, last);
      for (const branch of whole) yield { key: branch as Node, items: () => itemsUnder(branch as Node, depth - 1) };
      node = node[last] as Node;
    }
    yield { key: this.#tail, items: () => this.#tail };
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let start = 0; start < this.length; start += WIDTH) yield* this.#blockAt(start);
  }

  #blockAt(index: number): readonly T[] {
    if (index >= this.length - this.#tail.length) return this.#tail;
    let node = this.#root;
    for (let level = this.#depth * BITS; level > 0; level -= BITS) node = node[(index >>> level) & MASK] as Node;
    return node as readonly T[];
  }
}

/** Consecutive items of a list. */
export interface VectorPart<T> {
  /** An object that identifies this part in every list that shares it. */
  readonly key: object;
  readonly items: () => Iterable<T>;
}

function* itemsUnder<T>(node: Node, depth: number): Generator<T, void, undefined> {
  if (depth === 0) yield* node as readonly T[];
  else for (const branch of node) yield* itemsUnder<T>(branch as Node, depth - 1);
}

/** A tree with one more block at an index. */
function grow(root: Node, depth: number, position: number, block: Node): [Node, number] {
  if (position < WIDTH ** depth) return [insert(root, depth, position, block), depth];
  return [[root, insert([], depth, 0, block)], depth + 1];
}

function insert(node: Node, depth: number, position: number, block: Node): Node {
  if (depth === 0) return block;
  const slot = Math.floor(position / WIDTH ** (depth - 1)) & MASK;
  const copy = [...node];
  copy[slot] = insert((node[slot] as Node | undefined) ?? [], depth - 1, position, block);
  return copy;
}
