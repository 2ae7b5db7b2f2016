import type { SessionHead } from "../../session/log/fold.ts";
import { compareForListing, idleSince, listPosition, matchesQuery } from "../../session/query.ts";
import type { ListPosition, SessionListing } from "../../session/store-driver.ts";
import type { SessionQuery } from "../../session/store.ts";
import { type IndexRecord, partFor, recordMatches } from "./index-record.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { MEMBERS_AT_ONCE_MAX, type SessionIndex } from "./session-index.ts";

/**
 * Lists and counts sessions. The index selects them, and each head is read from the session itself. While the server refuses
 * writes, the index cannot be updated; then sessions with an outdated record are read one by one instead.
 */
export class Listing implements SessionListing {
  readonly #handle: RedisHandle;
  readonly #index: SessionIndex;
  readonly #port: RedisPort;

  constructor(port: RedisPort) {
    this.#handle = port.handle;
    this.#index = port.index;
    this.#port = port;
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<SessionHead[]> {
    const stale = await this.#index.refreshIfWritable();
    const items: SessionHead[] = [];
    for await (const ids of this.#candidates(query, limit, after)) {
      const matching = await this.#matching(without(ids, stale), query);
      items.push(...(await this.#matchingHeads(idsOf(matching), query, after)));
      if (items.length >= limit) break;
    }
    items.push(...(await this.#matchingHeads([...stale.keys()], query, after)));
    return items.sort((a, b) => compareForListing(listPosition(a), listPosition(b))).slice(0, limit);
  }

  async count(query: SessionQuery): Promise<number> {
    const stale = await this.#index.refreshIfWritable();
    const { key, exact } = partFor(this.#handle.names, query);
    if (exact && stale.size === 0) return this.#handle.command<number>("ZCARD", key);
    let count = (await this.#matchingHeads([...stale.keys()], query, null)).length;
    for await (const ids of this.#candidates(query, MEMBERS_AT_ONCE_MAX, null)) {
      const matching = await this.#matching(without(ids, stale), query);
      count += (await this.#filterByLease(idsOf(matching), query)).length;
    }
    return count;
  }

  async idleSince(before: string, limit: number): Promise<SessionHead[]> {
    const stale = await this.#index.refreshIfWritable();
    const heads = await this.#heads([...stale.keys()], false);
    let found = 0;
    for await (const ids of this.#index.before("idle", before, limit)) {
      const page = idleSince(await this.#heads(without(ids, stale), false), before);
      heads.push(...page);
      found += page.length;
      if (found >= limit) break;
    }
    return idleSince(heads, before).slice(0, limit);
  }

  /** The sessions that may match a query, in the order of a listing, after a position. */
  async *#candidates(
    query: SessionQuery,
    wanted: number,
    after: ListPosition | null,
  ): AsyncGenerator<readonly string[]> {
    if (query.dueBefore !== undefined && query.deleted !== true) {
      yield* this.#due(query, query.dueBefore, wanted, after);
      return;
    }
    yield* this.#index.after(partFor(this.#handle.names, query).key, after, wanted);
  }

  /** Due sessions are indexed by due time, so all of them are read and sorted before the first is listed. */
  async *#due(
    query: SessionQuery,
    before: string,
    wanted: number,
    after: ListPosition | null,
  ): AsyncGenerator<readonly string[]> {
    const positions: ListPosition[] = [];
    for await (const ids of this.#index.before("due", before)) positions.push(...(await this.#matching(ids, query)));
    const rest = after === null ? positions : positions.filter((position) => compareForListing(position, after) > 0);
    rest.sort(compareForListing);
    for (let first = 0; first < rest.length; first += wanted) yield idsOf(rest.slice(first, first + wanted));
  }

  /** The sessions among `ids` whose record matches a query, whether or not they have a live lease. */
  async #matching(ids: readonly string[], query: SessionQuery): Promise<readonly ListPosition[]> {
    if (ids.length === 0) return [];
    const key = this.#handle.names.index("records");
    const records = await this.#handle.command<(string | null)[]>("HMGET", key, ...ids);
    return ids.flatMap((id, i) => {
      const record = JSON.parse(records[i] ?? "null") as IndexRecord | null;
      return record !== null && recordMatches(record, query) ? { id, modifiedAt: record.modifiedAt } : [];
    });
  }

  /** The heads of the sessions among `ids` that match a query. Checked again, as a session may have changed since the index was read. */
  async #matchingHeads(
    ids: readonly string[],
    query: SessionQuery,
    after: ListPosition | null,
  ): Promise<SessionHead[]> {
    const isHeld = (): boolean => query.runs === "running";
    const heads = await this.#heads(await this.#filterByLease(ids, query), query.deleted === true);
    return heads.filter(
      (head) =>
        matchesQuery(head, query, isHeld) && (after === null || compareForListing(listPosition(head), after) > 0),
    );
  }

  /** Keeps the sessions with a live lease (`running`) or without one (`interrupted`); keeps all for other queries. */
  async #filterByLease(ids: readonly string[], { runs }: SessionQuery): Promise<readonly string[]> {
    if (runs !== "running" && runs !== "interrupted") return ids;
    const leases = await Promise.all(ids.map((id) => this.#port.leases.current(id)));
    return ids.filter((_, i) => (leases[i] !== null) === (runs === "running"));
  }

  async #heads(ids: readonly string[], deleted: boolean): Promise<SessionHead[]> {
    const sessions = await Promise.all(ids.map((id) => this.#port.loadAny(id)));
    return sessions.flatMap((session) =>
      session !== null && (session.deletedAt !== null) === deleted ? session.head : [],
    );
  }
}

function idsOf(positions: readonly ListPosition[]): readonly string[] {
  return positions.map(({ id }) => id);
}

function without(ids: readonly string[], others: ReadonlyMap<string, unknown>): readonly string[] {
  return others.size === 0 ? ids : ids.filter((id) => !others.has(id));
}
