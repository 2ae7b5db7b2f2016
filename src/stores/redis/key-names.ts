/**
 * The names of all keys of a store.
 *
 * What is in braces decides a key's slot in a cluster: the keys of a session share one, and so do the keys of the index.
 * A session's id has no brace or colon in it, and any other name that becomes part of a key is escaped, so that no two
 * things can have the same key.
 */
export class KeyNames {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The keys of a session, in the order in which its scripts take them; those of a log only with its unique name. */
  all(id: string, uid?: string): string[] {
    const own = [this.session(id), this.lease(id), this.floor(id)];
    if (uid === undefined) return own;
    const log = [this.entries(id, uid), this.positions(id, uid), this.forks(id, uid)];
    return [...own, ...log, this.checkpoints(id, uid), this.remains(id, uid)];
  }

  /** What is known of a session, beside its log: a hash. Whoever writes to it says so on a channel of the same name. */
  session(id: string): string {
    return `${this.#prefix}:s:{${id}}`;
  }

  /** The log of a session that has this unique name: a stream. */
  entries(id: string, uid: string): string {
    return `${this.#prefix}:e:{${id}}:${uid}`;
  }

  /** Where in the log each entry is: a hash of positions by entry id. */
  positions(id: string, uid: string): string {
    return `${this.#prefix}:n:{${id}}:${uid}`;
  }

  /** Which sessions build on the log: a hash by their unique names. */
  forks(id: string, uid: string): string {
    return `${this.#prefix}:f:{${id}}:${uid}`;
  }

  /** The checkpoints of a session: a hash. */
  checkpoints(id: string, uid: string): string {
    return `${this.#prefix}:c:{${id}}:${uid}`;
  }

  /** What is left of a purged session that others build on: a hash. */
  remains(id: string, uid: string): string {
    return `${this.#prefix}:t:{${id}}:${uid}`;
  }

  /** Who runs a session: a hash. */
  lease(id: string): string {
    return `${this.#prefix}:l:{${id}}`;
  }

  /** From which generation on a session that is not there may be made: a number. */
  floor(id: string): string {
    return `${this.#prefix}:g:{${id}}`;
  }

  /** A part of the index; `name`, where there is one, may be any text. */
  index(part: string, name?: string): string {
    const key = `${this.#prefix}:i:{${this.#prefix}}:${part}`;
    return name === undefined ? key : `${key}:${encodeURIComponent(name)}`;
  }
}
