import type { SessionHead } from "../../session/log/fold.ts";
import { idleSince, matchesQuery, pageOfHeads } from "../../session/query.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import type { DamagedSession, SessionQuery } from "../../session/store.ts";

/** All live or all deleted sessions of a store, and those that cannot be read. */
export interface ScannedSessions {
  /** `isHeld` returns true if the session has a live lease now. */
  readonly sessions: readonly { readonly head: SessionHead; readonly isHeld: () => boolean }[];
  readonly damaged: readonly DamagedSession[];
}

/** Which sessions a scan has to return; it may return more. */
export type ScannedPart = "all" | "with open runs" | "damaged";

/** Listings without an index: each call scans all sessions of the store, or those of the part that it asks for. */
export class ScannedListing implements SessionListing {
  readonly scans = true;
  readonly #scan: (deleted: boolean, part: ScannedPart) => Promise<ScannedSessions>;

  constructor(scan: (deleted: boolean, part: ScannedPart) => Promise<ScannedSessions>) {
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
    return (await this.#scan(deleted, "damaged")).damaged;
  }

  async #find(query: SessionQuery): Promise<SessionHead[]> {
    const part = query.runs === undefined && query.dueBefore === undefined ? "all" : "with open runs";
    const { sessions } = await this.#scan(query.deleted === true, part);
    return sessions.filter(({ head, isHeld }) => matchesQuery(head, query, isHeld)).map(({ head }) => head);
  }
}
