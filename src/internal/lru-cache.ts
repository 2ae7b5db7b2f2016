/** What the values of a cache take, and how much of it one of its halves may hold. */
export interface CacheWeights<Value> {
  readonly max: number;
  of(value: Value): number;
}

/**
 * A map that holds what was looked up or added last, between `limit` and twice as many; fewer where they are heavy.
 *
 * It has two halves: what is used goes to the newer one, and when that is full, the older one is dropped.
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
