/**
 * A map that holds what was looked up or added last, between `limit` and twice as many.
 *
 * It has two halves: what is used goes to the newer one, and when that is full, the older one is dropped.
 */
export class LruCache<Key, Value> {
  readonly #limit: number;
  #newer = new Map<Key, Value>();
  #older = new Map<Key, Value>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: Key): Value | undefined {
    const value = this.#newer.get(key);
    if (value !== undefined) return value;
    const old = this.#older.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: Key, value: Value): void {
    this.#newer.set(key, value);
    if (this.#newer.size < this.#limit) return;
    this.#older = this.#newer;
    this.#newer = new Map();
  }

  delete(key: Key): void {
    this.#newer.delete(key);
    this.#older.delete(key);
  }
}
