import type { SessionHead } from "../../session/log/fold.ts";
import { idleSince, matchesQuery, pageOfHeads } from "../../session/query.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import type { DamagedSession, SessionQuery } from "../../session/store.ts";

/** All sessions of a store, live or deleted, and what of it cannot be read. */
export interface ScannedSessions {
  /** Each with whether someone has it now. */
  readonly sessions: readonly { readonly head: SessionHead; readonly isHeld: () => boolean }[];
  readonly damaged: readonly DamagedSession[];
}

/** The listings of a store that looks at every session for them. */
export class ScannedListing implements SessionListing {
  readonly scans = true;
  readonly #scan: (deleted: boolean) => Promise<ScannedSessions>;

  constructor(scan: (deleted: boolean) => Promise<ScannedSessions>) {
    this.#scan = scan;
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<SessionHead[]> {
    return pageOfHeads(await this.#find(query), limit, after);
  }

  async count(query: SessionQuery): Promise<number> {
    return (await this.#find(query)).length;
  }

  async idleSince(before: string, limit: number): Promise<SessionHead[]> {
    return idleSince(await this.#find({}), before).slice(0, limit);
  }

  async damaged(deleted: boolean): Promise<readonly DamagedSession[]> {
    return (await this.#scan(deleted)).damaged;
  }

  async #find(query: SessionQuery): Promise<SessionHead[]> {
    const { sessions } = await this.#scan(query.deleted === true);
    return sessions.filter(({ head, isHeld }) => matchesQuery(head, query, isHeld)).map(({ head }) => head);
  }
}
