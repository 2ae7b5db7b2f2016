/**
 * The names of all keys of a store.
 *
 * The part in braces is the hash tag, which decides the cluster slot: all keys of a session are in one slot, and so are all
 * keys of the index. A session id has no brace or colon, and every other name in a key is escaped, so keys never collide.
 */
export class KeyNames {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The keys of a session, in the order that its scripts expect. The keys of its log only if `uid` is given. */
  all(id: string, uid?: string): string[] {
    const own = [this.session(id), this.lease(id), this.floor(id)];
    if (uid === undefined) return own;
    const log = [this.entries(id, uid), this.positions(id, uid), this.forks(id, uid)];
    return [...own, ...log, this.checkpoints(id, uid), this.remains(id, uid)];
  }

  /** A hash with everything about a session except its log. Every write to it is published on a channel of the same name. */
  session(id: string): string {
    return `${this.#prefix}:s:{${id}}`;
  }

  /** A stream with the entries of the log that has this uid. */
  entries(id: string, uid: string): string {
    return `${this.#prefix}:e:{${id}}:${uid}`;
  }

  /** A hash from entry ids to positions in the stream. */
  positions(id: string, uid: string): string {
    return `${this.#prefix}:n:{${id}}:${uid}`;
  }

  /** A hash of the forks that inherit from the log, by their uids. */
  forks(id: string, uid: string): string {
    return `${this.#prefix}:f:{${id}}:${uid}`;
  }

  /** A hash with the checkpoints of a session. */
  checkpoints(id: string, uid: string): string {
    return `${this.#prefix}:c:{${id}}:${uid}`;
  }

  /** A hash about a purged session from which forks inherit. */
  remains(id: string, uid: string): string {
    return `${this.#prefix}:t:{${id}}:${uid}`;
  }

  /** A hash with the lease of a session. */
  lease(id: string): string {
    return `${this.#prefix}:l:{${id}}`;
  }

  /** A number: the only generation in which a session that does not exist can be created. */
  floor(id: string): string {
    return `${this.#prefix}:g:{${id}}`;
  }

  /** A hash of the blobs of a root session and its forks. */
  blobs(scope: string): string {
    return `${this.#prefix}:b:{${scope}}`;
  }

  /** A hash with the chunks of a blob. */
  blobChunks(scope: string, chunks: string): string {
    return `${this.#prefix}:d:{${scope}}:${chunks}`;
  }

  /** A hash with the page of a user in the ledger. */
  spending(userId: string): string {
    return `${this.#prefix}:u:{${encodeURIComponent(userId)}}`;
  }

  /** A sorted set with the buckets of a user in the ledger. */
  spendingHours(userId: string): string {
    return `${this.#prefix}:h:{${encodeURIComponent(userId)}}`;
  }

  /** A key of the index. `name` can be any text. */
  index(part: string, name?: string): string {
    const key = `${this.#prefix}:i:{${this.#prefix}}:${part}`;
    return name === undefined ? key : `${key}:${encodeURIComponent(name)}`;
  }
}
