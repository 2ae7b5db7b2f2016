import type { SessionHead } from "../../session/fold.ts";
import { compareForListing, listPosition, matchesQuery } from "../../session/query.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import type { SessionQuery } from "../../session/store.ts";
import { type IndexRecord, idOfMember, partFor, recordMatches, timedMember } from "./index-record.ts";
import type { KeyNames } from "./key-names.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";
import type { SessionLog } from "./session-log.ts";

const MEMBERS_AT_ONCE_MIN = 32;
const MEMBERS_AT_ONCE_MAX = 1001;

/**
 * Lists and counts sessions. The index says which; what is shown of each is read from the session itself. While the server
 * takes no writes, sessions that the index could not be brought up to date with are looked at one by one instead.
 */
export class Listing {
  readonly #handle: RedisHandle;
  readonly #names: KeyNames;
  readonly #index: SessionIndex;
  readonly #log: SessionLog;

  constructor(parts: { handle: RedisHandle; names: KeyNames; index: SessionIndex; log: SessionLog }) {
    this.#handle = parts.handle;
    this.#names = parts.names;
    this.#index = parts.index;
    this.#log = parts.log;
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<SessionHead[]> {
    const unsettled = await this.#index.settleIfWritable();
    const { key } = partFor(this.#names, query);
    // A session that was written to since the index was read may have moved.
    const isWanted = (head: SessionHead): boolean =>
      matchesQuery(head, query) && (after === null || compareForListing(listPosition(head), after) > 0);
    const items: SessionHead[] = [];
    const from = after === null ? "+" : `(${timedMember(after.modifiedAt, after.id)}`;
    for await (const ids of this.#pages(key, from, true, limit)) {
      const matching = await this.#matching(without(ids, unsettled), query);
      items.push(...(await this.#heads(matching, query.deleted === true)).filter(isWanted));
      if (items.length >= limit) break;
    }
    items.push(...(await this.#heads([...unsettled], query.deleted === true)).filter(isWanted));
    return items.sort((a, b) => compareForListing(listPosition(a), listPosition(b))).slice(0, limit);
  }

  async count(query: SessionQuery): Promise<number> {
    const unsettled = await this.#index.settleIfWritable();
    const { key, exact } = partFor(this.#names, query);
    if (exact && unsettled.size === 0) return Number(await this.#handle.command(key, ["ZCARD", key]));
    const heads = await this.#heads([...unsettled], query.deleted === true);
    let count = heads.filter((head) => matchesQuery(head, query)).length;
    for await (const ids of this.#pages(key, "+", true, MEMBERS_AT_ONCE_MAX))
      count += (await this.#matching(without(ids, unsettled), query)).length;
    return count;
  }

  /** Open sessions that were last appended to before a time, the longest idle first. */
  async idleSince(before: string, limit: number): Promise<SessionHead[]> {
    const unsettled = await this.#index.settleIfWritable();
    const isIdle = ({ status, updatedAt }: SessionHead): boolean =>
      (status === "active" || status === "suspended") && updatedAt < before;
    const heads: SessionHead[] = [];
    for await (const ids of this.#pages(this.#names.index("idle"), "-", false, limit, `(${before}`)) {
      heads.push(...(await this.#heads(without(ids, unsettled), false)).filter(isIdle));
      if (heads.length >= limit) break;
    }
    heads.push(...(await this.#heads([...unsettled], false)).filter(isIdle));
    return heads.sort(compareIdle).slice(0, limit);
  }

  /** Sessions that were deleted before a time, the longest ago first, in pages. */
  async *deletedBefore(before: string): AsyncGenerator<readonly string[]> {
    await this.#index.settle();
    yield* this.#pages(this.#names.index("deleted-at"), "-", false, MEMBERS_AT_ONCE_MAX, `(${before}`);
  }

  async *#pages(
    key: string,
    from: string,
    reverse: boolean,
    wanted: number,
    to: string = reverse ? "-" : "+",
  ): AsyncGenerator<readonly string[]> {
    const size = Math.min(MEMBERS_AT_ONCE_MAX, Math.max(MEMBERS_AT_ONCE_MIN, wanted));
    let start = from;
    for (;;) {
      const range = ["ZRANGE", key, start, to, "BYLEX", ...(reverse ? ["REV"] : []), "LIMIT", "0", String(size)];
      const members = (await this.#handle.command(key, range)) as string[];
      yield members.map(idOfMember);
      if (members.length < size) return;
      start = `(${members.at(-1)}`;
    }
  }

  /** Those of some sessions that, by the index, a query asks for. */
  async #matching(ids: readonly string[], query: SessionQuery): Promise<readonly string[]> {
    if (ids.length === 0) return [];
    const key = this.#names.index("records");
    const records = (await this.#handle.command(key, ["HMGET", key, ...ids])) as (string | null)[];
    return ids.filter((_, i) => {
      const record = records[i];
      return typeof record === "string" && recordMatches(JSON.parse(record) as IndexRecord, query);
    });
  }

  async #heads(ids: readonly string[], deleted: boolean): Promise<SessionHead[]> {
    const sessions = await Promise.all(ids.map((id) => this.#log.loadAny(id)));
    return sessions.flatMap((session) =>
      session !== null && (session.deletedAt !== null) === deleted ? session.head : [],
    );
  }
}

function without(ids: readonly string[], others: ReadonlySet<string>): readonly string[] {
  return others.size === 0 ? ids : ids.filter((id) => !others.has(id));
}

function compareIdle(a: SessionHead, b: SessionHead): number {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt < b.updatedAt ? -1 : 1;
  return a.header.id < b.header.id ? -1 : a.header.id > b.header.id ? 1 : 0;
}
