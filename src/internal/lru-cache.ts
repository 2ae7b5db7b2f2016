/** Weighs the values of a cache. `max` is the most weight that one of its two halves may hold. */
export interface CacheWeights<Value> {
  readonly max: number;
  of(value: Value): number;
}

/**
 * A cache of the values that were read or added last. It holds between `limit` and twice as many, or fewer heavy ones.
 *
 * It has two halves. Values that are used move to the newer half; when that is full, the older half is dropped.
 */
export class LruCache<Key, Value> {
  readonly #limit: number;
  readonly #weights: CacheWeights<Value> | null;
  #weight = 0;
  #newer = new Map<Key, Value>();
  #older = new Map<Key, Value>();

  constructor(limit: number, weights: CacheWeights<Value> | null = null) {
    this.#limit = limit;
    this.#weights = weights;
  }

  get(key: Key): Value | undefined {
    const value = this.#newer.get(key);
    if (value !== undefined) return value;
    const old = this.#older.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: Key, value: Value): void {
    this.#weight += this.#weightOf(value) - this.#weightOf(this.#newer.get(key));
    this.#newer.set(key, value);
    if (this.#newer.size < this.#limit && this.#weight < (this.#weights?.max ?? Number.POSITIVE_INFINITY)) return;
    this.#weight = 0;
    this.#older = this.#newer;
    this.#newer = new Map();
  }

  delete(key: Key): void {
    this.#weight -= this.#weightOf(this.#newer.get(key));
    this.#newer.delete(key);
    this.#older.delete(key);
  }

  #weightOf(value: Value | undefined): number {
    return value === undefined ? 0 : (this.#weights?.of(value) ?? 0);
  }
}
