import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionError } from "../../session/errors.ts";
import { type Limit, tooMany } from "../complete/session-limits.ts";
import { RESERVE } from "./index-scripts.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";

const ATTEMPTS_MAX = 20;
/** After so long, a process that reserved room and created no session has died, or its creation will be refused. */
const RESERVED_MS_MAX = 10_000;

/** Room for one session within a limit, reserved until the session is in the index or was not created. */
interface Reservation {
  readonly key: string;
  readonly member: string;
}

/** Enforces limits on the number of sessions, also when several processes create sessions at the same time. */
export class Quota {
  readonly #handle: RedisHandle;
  readonly #index: SessionIndex;

  constructor(handle: RedisHandle, index: SessionIndex) {
    this.#handle = handle;
    this.#index = index;
  }

  /**
   * Creates or undeletes a session while room for it is reserved within each limit. `make` must call `renew` to
   * reserve again when it marks the session in a later generation: the process that ended the earlier one may have released the
   * reservations.
   *
   * @throws {SessionCapacityError} if a limit is reached, counting the reservations of other processes.
   */
  async within<T>(
    sessionId: string,
    limits: readonly Limit[],
    make: (renew: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    if (limits.length === 0) return make(async () => {});
    const reservations: Reservation[] = [];
    const renew = async (): Promise<void> => {
      await this.#release(reservations);
      for (const limit of limits) reservations.push(await this.#reserve(sessionId, limit));
    };
    try {
      await renew();
      const made = await make(renew);
      await this.#index.refreshOne(sessionId);
      await this.#release(reservations);
      return made;
    } catch (error) {
      // If it is unknown whether the session was created, another process releases the reservations once they are old.
      if (isRefusal(error)) await this.#release(reservations);
      throw error;
    }
  }

  async #reserve(sessionId: string, limit: Limit): Promise<Reservation> {
    const { names } = this.#handle;
    const { part, name, max } = limit;
    const reservation = { key: names.index(`reserved-${part}`, name), member: `${sessionId} ${uuidv7()}` };
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.#index.refresh();
      const args = [String(max), reservation.member, String(RESERVED_MS_MAX)];
      const [kind, old] = await this.#handle.run(RESERVE, [names.index(part, name), reservation.key], args);
      if (kind === "full") throw tooMany(limit);
      if (kind === "ok") return reservation;
      for (const member of old as string[]) await this.#releaseOld({ ...reservation, member });
    }
    throw new SessionBusyError(sessionId, "others that create sessions under the same limit all the time");
  }

  async #releaseOld(reservation: Reservation): Promise<void> {
    const id = reservation.member.split(" ", 1)[0] as string;
    const floor = await this.#handle.command<string | null>("GET", this.#handle.names.floor(id));
    // Either the session exists and is counted itself, or the fence prevents its creation with this reservation.
    if (!(await this.#index.fence(id, floor ?? "0"))) await this.#index.refreshOne(id);
    await this.#release([reservation]);
  }

  async #release(reservations: Reservation[]): Promise<void> {
    for (const { key, member } of reservations.splice(0)) await this.#handle.command("ZREM", key, member);
  }
}

/** Whether an error proves that no session was created. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SessionError && ["SESSION_EXISTS", "CAPACITY", "SESSION_BUSY"].includes(error.code);
}
