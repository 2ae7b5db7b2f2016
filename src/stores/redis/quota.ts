import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionError } from "../../session/errors.ts";
import { type Limit, tooMany } from "../complete/session-limits.ts";
import { RESERVE } from "./index-scripts.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";

const ATTEMPTS_MAX = 20;
/** After so long, whoever reserved a slot and has not made a session has died or will be refused. */
const RESERVED_MS_MAX = 10_000;

/** A slot that is taken for a session; it is given back once the session is in the index, or was not made. */
interface Slot {
  readonly reserved: string;
  readonly member: string;
}

/** Keeps limits on how many sessions there are, also when many are made at once by several processes. */
export class Quota {
  readonly #handle: RedisHandle;
  readonly #index: SessionIndex;

  constructor(handle: RedisHandle, index: SessionIndex) {
    this.#handle = handle;
    this.#index = index;
  }

  /**
   * Makes a session, or brings it back, with a slot taken under each limit. Whoever is told meanwhile that the session
   * cannot be made with what was marked before calls `renew`, as someone may have given the slots back.
   *
   * @throws {SessionCapacityError} when a limit is reached, counting what others are just about to make.
   */
  async within<T>(
    sessionId: string,
    limits: readonly Limit[],
    make: (renew: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    if (limits.length === 0) return make(async () => {});
    const slots: Slot[] = [];
    const renew = async (): Promise<void> => {
      await this.#release(slots);
      for (const limit of limits) slots.push(await this.#reserve(sessionId, limit));
    };
    try {
      await renew();
      const made = await make(renew);
      await this.#index.settleOne(sessionId);
      await this.#release(slots);
      return made;
    } catch (error) {
      // Where it is not known whether the session was made, the slots are given back once that shows.
      if (isRefusal(error)) await this.#release(slots);
      throw error;
    }
  }

  async #reserve(sessionId: string, limit: Limit): Promise<Slot> {
    const { names } = this.#handle;
    const { part, name, max } = limit;
    const slot = { reserved: names.index(`reserved-${part}`, name), member: `${sessionId} ${uuidv7()}` };
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.#index.settle();
      const args = [String(max), slot.member, String(RESERVED_MS_MAX)];
      const [kind, old] = await this.#handle.run(RESERVE, [names.index(part, name), slot.reserved], args);
      if (kind === "full") throw tooMany(limit);
      if (kind === "ok") return slot;
      for (const member of old as string[]) await this.#giveBack({ ...slot, member });
    }
    throw new SessionBusyError(sessionId, "others that make sessions under the same limit all the time");
  }

  async #giveBack(slot: Slot): Promise<void> {
    const id = slot.member.split(" ", 1)[0] as string;
    const floor = await this.#handle.command<string | null>("GET", this.#handle.names.floor(id));
    // Either the session is there, and then it counts by itself, or it cannot be made any more with that slot.
    if (!(await this.#index.fence(id, floor ?? "0"))) await this.#index.settleOne(id);
    await this.#release([slot]);
  }

  async #release(slots: Slot[]): Promise<void> {
    for (const { reserved, member } of slots.splice(0)) await this.#handle.command("ZREM", reserved, member);
  }
}

/** Whether it is certain that nothing was made. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SessionError && ["SESSION_EXISTS", "CAPACITY", "SESSION_BUSY"].includes(error.code);
}
