import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionCapacityError } from "../../session/errors.ts";
import { RESERVE } from "./index-scripts.ts";
import type { KeyNames } from "./key-names.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";

const ATTEMPTS_MAX = 20;
/** After so long, whoever reserved a place and has not made a session has died or will be refused. */
const RESERVED_MS_MAX = 10_000;

/** What may not become too many: the open sessions of a user, or the forks of a session. */
export interface Limit {
  readonly part: "open" | "forks";
  readonly name: string;
  readonly what: string;
  readonly max: number;
}

/** The limit of a user's open sessions. */
export function openLimit(userId: string, max: number): Limit {
  return { part: "open", name: userId, what: "open sessions of a user", max };
}

/** The limit of a session's forks. */
export function forkLimit(sourceId: string, max: number): Limit {
  return { part: "forks", name: sourceId, what: "forks of a session", max };
}

/** A reserved place; it is given back once the session is in the index, or was not made. */
export interface Reservation {
  release(): Promise<void>;
}

/** Keeps limits on how many sessions there are, also when many are made at once by several processes. */
export class Quota {
  readonly #handle: RedisHandle;
  readonly #names: KeyNames;
  readonly #index: SessionIndex;

  constructor(handle: RedisHandle, names: KeyNames, index: SessionIndex) {
    this.#handle = handle;
    this.#names = names;
    this.#index = index;
  }

  /** @throws {SessionCapacityError} when the limit is reached, counting what others are just about to make. */
  async reserve(sessionId: string, { part, name, what, max }: Limit): Promise<Reservation> {
    const reserved = this.#names.index(`reserved-${part}`, name);
    const place = `${sessionId} ${uuidv7()}`;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.#index.settle();
      const args = [String(max), place, String(RESERVED_MS_MAX)];
      const [kind, old] = await this.#handle.run(RESERVE, [this.#names.index(part, name), reserved], args);
      if (kind === "full") throw new SessionCapacityError(what, max);
      if (kind === "ok") return { release: () => this.#remove(reserved, place) };
      for (const each of old as string[]) await this.#giveBack(reserved, each);
    }
    throw new SessionBusyError(sessionId, "others that make sessions under the same limit all the time");
  }

  async #giveBack(reserved: string, place: string): Promise<void> {
    const id = place.split(" ", 1)[0] as string;
    const key = this.#names.floor(id);
    const floor = (await this.#handle.command(key, ["GET", key])) as string | null;
    // Either the session is there, and then it counts by itself, or it cannot be made any more with that place.
    if (!(await this.#index.fence(id, floor ?? "0"))) await this.#index.settleOne(id);
    await this.#remove(reserved, place);
  }

  async #remove(reserved: string, place: string): Promise<void> {
    await this.#handle.command(reserved, ["ZREM", reserved, place]);
  }
}
