import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { parentsOf } from "../../session/query.ts";
import type { SessionStore } from "../../session/store.ts";
import { idsListed, ListingCheck } from "./check-listings.ts";
import { checkSession } from "./check-session.ts";
import { listPages } from "../complete/list-pages.ts";
import { END_OF_TIME, STATUSES } from "../complete/valid-arguments.ts";
import type { FindingKind, ReportFinding, StoreFinding } from "./store-finding.ts";
import { skippableError } from "../complete/skippable-error.ts";
import { eraserOf } from "../tombstones.ts";

/** Options of `checkStore`. */
export interface CheckStoreOptions {
  /** Check only these sessions and their places in listings (default: all live sessions). */
  readonly sessions?: readonly string[];
  /** Called after every session. */
  readonly onProgress?: (progress: CheckProgress) => void;
  readonly signal?: AbortSignal;
}

/** The progress of a check. */
export interface CheckProgress {
  readonly sessionsDone: number;
  readonly sessionsTotal: number;
  readonly findings: number;
}

/** The result of a check. If `findings` is empty, nothing is wrong. */
export interface StoreReport {
  readonly sessions: number;
  readonly entries: number;
  readonly findings: readonly StoreFinding[];
}

/** At most this many findings of one kind are reported for one session. */
const FINDINGS_MAX = 10;

/**
 * Reads and folds every log of a store, and compares the result with everything else that the store keeps: heads, paths,
 * look-ups by id, checkpoints, forks, listings, counts and the search index. It changes nothing, and others may use the
 * store meanwhile.
 *
 * @throws {SessionError} the store's error if the store does not answer.
 */
export async function checkStore(store: SessionStore, options: CheckStoreOptions = {}): Promise<StoreReport> {
  checkStoreArgument(store, "checkStore");
  checkOptionsOf(
    options,
    { sessions: true, onProgress: true, signal: true } satisfies KeysOf<CheckStoreOptions>,
    "checkStore",
  );
  const { signal, onProgress } = options;
  const findings: StoreFinding[] = [];
  const report = collector(findings);
  const listings = new ListingCheck(store, report, options.sessions === undefined);
  // The loop adds to this queue: a session may name a parent that is in no listing.
  const queue = new Set(options.sessions ?? (await sessionsOf(store, report, signal)));
  let [entries, sessions] = [0, 0];
  for (const id of queue) {
    signal?.throwIfAborted();
    const readable = <T>(task: () => Promise<T>): Promise<T | undefined> => attempt(store, id, report, signal, task);
    const head = await readable(() => store.head(id));
    if (head === null && options.sessions !== undefined) report(id, "unreadable", "There is no such session.");
    if (head === null || head === undefined) continue;
    sessions += 1;
    listings.add(head);
    if (options.sessions === undefined) for (const parent of parentsOf(head)) queue.add(parent);
    const own = (kind: FindingKind, message: string): void => report(id, kind, message);
    entries += (await readable(() => checkSession(store, head, own, signal))) ?? 0;
    onProgress?.({ sessionsDone: sessions, sessionsTotal: queue.size, findings: findings.length });
  }
  await listings.check(signal);
  for (const message of (await eraserOf(store)?.leftovers?.()) ?? []) report(null, "leftover", message);
  return { sessions, entries, findings };
}

/** The ids of all sessions that are in any listing or index. */
async function sessionsOf(
  store: SessionStore,
  report: ReportFinding,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const ids = new Set<string>();
  for await (const { items, damaged } of listPages(store)) {
    signal?.throwIfAborted();
    for (const { id, path, reason } of damaged) report(id, "unreadable", `${path} cannot be read: ${reason}.`);
    for (const { header } of items) ids.add(header.id);
  }
  const queries = [...STATUSES.map((status) => ({ status })), { runs: "requested" }, { runs: "asking" }] as const;
  for (const query of queries) for (const id of await idsListed(store, query)) ids.add(id);
  for (const { header } of await store.listExpired(END_OF_TIME, PAGE_ITEMS_MAX)) ids.add(header.id);
  return [...ids];
}

/** Runs a task and reports any error as a finding: a damaged row can make a driver fail anywhere. */
async function attempt<T>(
  store: SessionStore,
  id: string,
  report: ReportFinding,
  signal: AbortSignal | undefined,
  task: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await task();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof SessionError) await skippableError(error, [store]);
    else await store.ping();
    report(id, "unreadable", error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

function collector(findings: StoreFinding[]): ReportFinding {
  const counts = new Map<string, number>();
  return (sessionId, kind, message) => {
    const key = `${kind} ${sessionId}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count <= FINDINGS_MAX) findings.push({ sessionId, kind, message });
  };
}
