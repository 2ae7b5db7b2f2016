import { show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { hasWaitingRun } from "../../session/log/open-runs.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { matchesQuery, parentsOf } from "../../session/query.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import { canonicalJson } from "./log-digest.ts";
import { forListing } from "../complete/head-weight.ts";
import { listedHeads } from "../complete/list-pages.ts";
import { END_OF_TIME, STATUSES } from "../complete/valid-arguments.ts";
import type { ReportFinding } from "./store-finding.ts";

/** The query for runs that have started. Without a holder, every started run matches `interrupted`. */
const STARTED: SessionQuery = { runs: "interrupted" };

/** Checks that each listing of a store contains exactly the sessions that match its query. */
export class ListingCheck {
  readonly #store: SessionStore;
  readonly #report: ReportFinding;
  /** Whether all sessions of the store are added, so that extra sessions in a listing can be found as well as missing ones. */
  readonly #complete: boolean;
  /** The queries by open runs. `running` and `interrupted` are checked together, since a lease can change at any time. */
  readonly #runsQueries: readonly SessionQuery[] = [
    { runs: "requested" },
    STARTED,
    { runs: "asking" },
    { dueBefore: new Date().toISOString() },
    { dueBefore: END_OF_TIME },
  ];
  readonly #versions = new Map<string, number>();
  /** Sessions with a waiting run. They do not count as idle. */
  readonly #waiting = new Set<string>();
  readonly #groups = new Map<string, { readonly query: SessionQuery; readonly ids: Set<string> }>();

  constructor(store: SessionStore, report: ReportFinding, complete: boolean) {
    this.#store = store;
    this.#report = report;
    this.#complete = complete;
    if (complete)
      for (const query of [...STATUSES.map((status) => ({ status })), ...this.#runsQueries]) this.#group(query);
  }

  /** Adds a session to the expected members of every query that it matches. */
  add(head: SessionHead): void {
    const { id, userId, cwd } = head.header;
    this.#versions.set(id, head.version);
    if (hasWaitingRun(head.openRuns)) this.#waiting.add(id);
    const queries: SessionQuery[] = [{}, { status: head.status }];
    if (userId !== null) queries.push({ userId });
    if (cwd !== null) queries.push({ cwd });
    for (const parentId of parentsOf(head)) queries.push({ parentId });
    queries.push(...this.#runsQueries.filter((query) => matchesQuery(head, query)));
    for (const query of queries) this.#group(query).add(id);
  }

  /** Compares all listings with the expected members. Others may use the store meanwhile. */
  async check(signal: AbortSignal | undefined): Promise<void> {
    await this.#checkHeads();
    for (const { query, ids } of this.#groups.values()) {
      signal?.throwIfAborted();
      const list = query === STARTED ? () => idsStarted(this.#store) : () => idsListed(this.#store, query);
      await this.#checkMembers(query, ids, list, "listing");
      if (this.#complete) await this.#checkCount(query);
    }
    if (!this.#complete) return;
    await this.#checkIdle();
    await this.#checkDeleted();
    await this.#checkCount({ deleted: true });
  }

  #group(query: SessionQuery): Set<string> {
    const key = canonicalJson(query);
    const group = this.#groups.get(key) ?? { query, ids: new Set() };
    this.#groups.set(key, group);
    return group.ids;
  }

  async #checkHeads(): Promise<void> {
    for await (const item of listedHeads(this.#store)) {
      const { id } = item.header;
      const added = this.#versions.get(id);
      const head = added === undefined ? null : await this.#store.head(id);
      // A session with fewer entries than before was purged and created again.
      if (head === null || added === undefined || head.version < added) continue;
      // The listing was read after the head, so it must be at least as new.
      if (item.version < added)
        this.#report(id, "listing", `It is listed at version ${item.version}, which is behind its head.`);
      else if (head.version === item.version && canonicalJson(forListing(head)) !== canonicalJson(item))
        this.#report(id, "listing", "Its head in the listing differs from its head.");
    }
  }

  async #checkMembers(
    query: SessionQuery,
    expected: ReadonlySet<string>,
    list: () => Promise<ReadonlySet<string>>,
    kind: "listing" | "idle",
  ): Promise<void> {
    const listed = await list();
    const missing = [...expected].filter((id) => !listed.has(id));
    const extra = this.#complete ? [...listed].filter((id) => !expected.has(id)) : [];
    const differing = [...missing, ...extra];
    if (differing.length === 0) return;
    // The session may have changed meanwhile. Report a difference only if it is still there while the session is unchanged.
    const before = await this.#store.heads(differing);
    const again = await list();
    const after = await this.#store.heads(differing);
    for (const [index, id] of differing.entries()) {
      const [earlier, head] = [before[index] ?? null, after[index] ?? null];
      if (earlier?.version !== head?.version) continue;
      const belongs = head !== null && matchesQuery(head, query);
      if (belongs === again.has(id)) continue;
      const where = `the ${kind === "idle" ? "idle sessions" : `listing ${describe(query)}`}`;
      this.#report(id, kind, belongs ? `It is missing in ${where}.` : `It is in ${where} but does not match.`);
    }
  }

  async #checkCount(query: SessionQuery): Promise<void> {
    const before = await idsListed(this.#store, query);
    const count = await this.#store.count(query);
    if (count === before.size) return;
    const again = await this.#store.count(query);
    const after = await idsListed(this.#store, query);
    if (again === after.size || after.size !== before.size) return;
    this.#report(null, "count", `The count ${describe(query)} is ${again}, and the listing has ${after.size}.`);
  }

  async #checkIdle(): Promise<void> {
    const open = ["active", "suspended"] as const;
    const expected = new Set(open.flatMap((status) => [...this.#group({ status })]));
    for (const id of this.#waiting) expected.delete(id);
    // A listing of idle sessions has only one page.
    if (expected.size >= PAGE_ITEMS_MAX) return;
    const list = async (): Promise<ReadonlySet<string>> => {
      const heads = await this.#store.listExpired(END_OF_TIME, PAGE_ITEMS_MAX);
      return new Set(heads.map(({ header }) => header.id));
    };
    await this.#checkMembers({ status: open }, expected, list, "idle");
  }

  async #checkDeleted(): Promise<void> {
    for await (const { header } of listedHeads(this.#store, { deleted: true })) {
      if ((await this.#store.head(header.id)) === null) continue;
      const again = await idsListed(this.#store, { deleted: true });
      if (again.has(header.id) && (await this.#store.head(header.id)) !== null)
        this.#report(header.id, "listing", "It is listed as deleted but can be opened.");
    }
  }
}

/** The ids that a query lists. */
export async function idsListed(store: SessionStore, query: SessionQuery): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { header } of listedHeads(store, query)) ids.add(header.id);
  return ids;
}

async function idsStarted(store: SessionStore): Promise<ReadonlySet<string>> {
  const left = await idsListed(store, { runs: "interrupted" });
  return new Set([...left, ...(await idsListed(store, { runs: "running" }))]);
}

function describe(query: SessionQuery): string {
  if (query === STARTED) return "of runs that have started";
  const [condition] = Object.entries(query);
  return condition === undefined ? "of all sessions" : `by ${condition[0]} ${show(condition[1])}`;
}
