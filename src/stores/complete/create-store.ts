import { NOTHING_FOUND, planNow } from "../../session/log/append-plan.ts";
import { type CheckedDraft, checkDrafts } from "../../session/log/draft.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { LeaseLostError, SessionConflictError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../../session/log/fold.ts";
import { checkHeader, type SessionHeader } from "../../session/log/header.ts";
import { checkName, checkSessionId } from "../../session/id.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { hasWaitingRun } from "../../session/log/open-runs.ts";
import { parseSearch } from "../../session/search.ts";
import { NO_SETTINGS, type Settings } from "../../session/log/settings.ts";
import type { DriverQuery, LeaseTable, StoreDriver } from "../../session/store-driver.ts";
import type {
  AggregateQuery,
  AggregateRow,
  AppendOptions,
  AppendResult,
  Checkpoint,
  CreateOptions,
  ForkOptions,
  Lease,
  LeaseInfo,
  PurgeQuery,
  ReadJsonOptions,
  ReadOptions,
  SearchHit,
  SessionPage,
  SessionQuery,
  SessionStore,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
  WatchOptions,
} from "../../session/store.ts";
import { aggregateByScan, sortRows } from "./aggregate-by-scan.ts";
import {
  checkAppendOptions,
  checkCount,
  checkMakeOptions,
  checkPurge,
  checkTime,
  checkWatchOptions,
  LEASE_TTL_MS_MAX,
  readRange,
} from "./valid-arguments.ts";
import { checkCheckpoint } from "./valid-checkpoint.ts";
import { checkAggregateQuery, checkQuery } from "./valid-query.ts";
import { heldLease } from "./held-lease.ts";
import { listPage } from "./list-page.ts";
import { openLater } from "./open-later.ts";
import { ProcessLeases } from "./process-leases.ts";
import { searchByScan } from "./search-by-scan.ts";
import type { ScanSource } from "./session-scan.ts";
import { storeClosed } from "./store-closed.ts";
import { WatchHub } from "./watch-hub.ts";

const JSON_ENTRIES_DEFAULT = 100;
/** The largest page that a server gives, and one more, which tells whether there is another. */
const JSON_ENTRIES_MAX = 1001;
/** With more drafts than that, a session is not checked and made in one go. */
const DRAFTS_AT_ONCE = 1000;
const NO_OPTIONS: AppendOptions = Object.freeze({});
const NO_SUCH_VERSION = -1;

/** How a store is made of a driver. */
export interface CreateStoreOptions {
  /** What time it is for leases that the driver does not keep itself. */
  readonly clock?: () => Date;
}

/**
 * A store that does what its driver does, and the rest by itself: it checks every argument, pages listings, refuses
 * calls after `close`, and brings search, sums, leases and watching where the driver has none.
 */
export function createStore(driver: StoreDriver, options: CreateStoreOptions = {}): SessionStore {
  return new DrivenStore(driver, options.clock ?? (() => new Date()));
}

class DrivenStore implements SessionStore {
  readonly capabilities: StoreCapabilities;
  readonly #driver: StoreDriver;
  readonly #hub: WatchHub;
  /** Null where the driver keeps leases, and then checks their tokens too. */
  readonly #processLeases: ProcessLeases | null;
  readonly #leases: LeaseTable;
  readonly #scan: ScanSource;
  #closing: Promise<void> | null = null;

  constructor(driver: StoreDriver, clock: () => Date) {
    this.#driver = driver;
    this.#hub = new WatchHub(driver, driver.capabilities.shared);
    this.#processLeases = driver.leases === undefined ? new ProcessLeases(clock) : null;
    this.#leases = driver.leases ?? (this.#processLeases as LeaseTable);
    this.#scan = {
      list: (query, limit, after) => this.#openDriver().list(query, limit, after),
      read: (sessionId, range) => this.#openDriver().read(sessionId, range),
    };
    this.capabilities = capabilitiesOf(driver);
  }

  async create(header: SessionHeader, options: CreateOptions = {}): Promise<SessionHead> {
    this.#openDriver();
    checkMakeOptions(options);
    const { entries = [], maxOpenPerUser, variablesBytesMax } = options;
    const drafts = checkDrafts(entries, { verbatim: true });
    const checked = checkHeader(header);
    if (variablesBytesMax !== undefined) checkVariables(checked, drafts, variablesBytesMax);
    // What was checked and what comes take long with many entries; others have their turn between.
    if (drafts.length > DRAFTS_AT_ONCE) await new Promise((resolve) => setImmediate(resolve));
    return this.#openDriver().create(checked, drafts, maxOpenPerUser === undefined ? {} : { maxOpenPerUser });
  }

  // Not an async function: an append is the hot path, and this way the caller awaits the driver's own promise.
  append(sessionId: string, drafts: readonly EntryDraft[], options: AppendOptions = NO_OPTIONS): Promise<AppendResult> {
    try {
      this.#driverFor(sessionId);
      if (options !== NO_OPTIONS) checkAppendOptions(options);
      const checked = checkDrafts(drafts, { verbatim: options.verbatim === true, by: options.by });
      if (checked.length === 0) return this.#appendNothing(sessionId);
      const started = this.#hub.started(sessionId);
      const appending =
        started === null
          ? this.#appendChecked(sessionId, checked, options)
          : started.then(() => this.#appendChecked(sessionId, checked, options));
      if (started === null && this.#driver.appendsAtOnce === true) this.#hub.wake(sessionId);
      else
        appending.then(
          () => this.#hub.wake(sessionId),
          () => {},
        );
      return appending;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    const driver = this.#driverFor(sessionId);
    return driver.head(sessionId);
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const driver = this.#openDriver();
    for (const id of sessionIds) checkSessionId(id);
    return driver.heads?.(sessionIds) ?? Promise.all(sessionIds.map((id) => driver.head(id)));
  }

  read(sessionId: string, options: ReadOptions = {}): AsyncIterable<Entry> {
    const check = (): void => void this.#openDriver();
    const open = (): AsyncIterator<Entry> => {
      checkSessionId(sessionId);
      return this.#driver.read(sessionId, readRange(options))[Symbol.asyncIterator]();
    };
    return { [Symbol.asyncIterator]: () => openLater(open, check) };
  }

  async readJson(sessionId: string, options: ReadJsonOptions = {}): Promise<readonly string[]> {
    const driver = this.#driverFor(sessionId);
    const { limit = JSON_ENTRIES_DEFAULT, charactersMax = Number.MAX_SAFE_INTEGER } = options;
    checkCount(charactersMax, "charactersMax");
    checkCount(limit, "limit", 0, JSON_ENTRIES_MAX);
    const range = readRange({ ...options, limit });
    if (driver.readJson !== undefined) return driver.readJson(sessionId, range, charactersMax);
    const texts: string[] = [];
    let characters = 0;
    for await (const entry of driver.read(sessionId, range)) {
      const text = JSON.stringify(entry);
      texts.push(text);
      characters += text.length;
      if (characters > charactersMax) break;
    }
    return texts;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const driver = this.#driverFor(sessionId);
    checkName(entryId, "an entry");
    return driver.getEntry(sessionId, entryId);
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    const driver = this.#driverFor(sessionId);
    checkName(entryId, "an entry");
    return driver.path(sessionId, entryId);
  }

  async settings(sessionId: string, path: PathSummary): Promise<Settings> {
    const driver = this.#driverFor(sessionId);
    return path.settings === null ? NO_SETTINGS : driver.settings(sessionId, path.settings);
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions = {}): Promise<SessionHead> {
    const driver = this.#driverFor(sourceId);
    checkMakeOptions(options);
    const { at, maxForks, maxOpenPerUser } = options;
    const limits = {
      ...(maxForks === undefined ? {} : { maxForks }),
      ...(maxOpenPerUser === undefined ? {} : { maxOpenPerUser }),
    };
    return driver.fork(sourceId, checkHeader(header), { at, ...limits });
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    const driver = this.#openDriver();
    const { filter, limit, after } = checkQuery(query);
    return listPage(driver, this.#driverQuery(filter), limit, after);
  }

  async count(query: SessionQuery = {}): Promise<number> {
    const driver = this.#openDriver();
    return driver.count(this.#driverQuery(checkQuery(query).filter));
  }

  async search(text: string, query: SessionQuery = {}): Promise<SearchHit[]> {
    const driver = this.#openDriver();
    const terms = parseSearch(text);
    const checked = checkQuery(query);
    const [filter, limit] = [this.#driverQuery(checked.filter), checked.limit];
    return driver.search === undefined
      ? searchByScan(this.#scan, terms, filter, limit)
      : driver.search(terms, { ...filter, limit });
  }

  async delete(sessionId: string): Promise<boolean> {
    const driver = this.#driverFor(sessionId);
    const deleted = await driver.delete(sessionId);
    this.#processLeases?.drop(sessionId);
    this.#hub.wake(sessionId);
    return deleted;
  }

  async undelete(sessionId: string, options: UndeleteOptions = {}): Promise<boolean> {
    const driver = this.#driverFor(sessionId);
    checkMakeOptions(options);
    return driver.undelete(sessionId, options);
  }

  async purge(which: string | PurgeQuery): Promise<number> {
    const driver = this.#openDriver();
    return driver.purge(checkPurge(which));
  }

  get eraser(): StoreEraser {
    const { eraser } = this.#openDriver();
    if (eraser !== undefined) return eraser;
    throw new SessionError("NOT_SUPPORTED", "This store cannot erase what it holds; its driver has no eraser.");
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    const driver = this.#openDriver();
    return driver.saveCheckpoint(checkCheckpoint(checkpoint));
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    const driver = this.#openDriver();
    checkName(id, "a checkpoint");
    return driver.loadCheckpoint(id);
  }

  async listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    const driver = this.#driverFor(sessionId);
    return driver.listCheckpoints(sessionId);
  }

  async deleteCheckpoint(id: string): Promise<boolean> {
    const driver = this.#openDriver();
    checkName(id, "a checkpoint");
    return driver.deleteCheckpoint(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    const driver = this.#openDriver();
    checkTime(before, "before");
    checkCount(limit, "limit", 1, PAGE_ITEMS_MAX);
    for (let most = limit; ; most *= 2) {
      const heads = await driver.listExpired(before, most);
      const idle = heads.filter(({ openRuns }) => !hasWaitingRun(openRuns));
      if (idle.length >= limit || heads.length < most) return idle.slice(0, limit);
    }
  }

  watch(sessionId: string, options: WatchOptions = {}): AsyncIterable<Entry> {
    // Only a watch that begins after `close` is refused; one that has begun just ends then.
    const open = (): AsyncIterator<Entry> => {
      this.#driverFor(sessionId);
      checkWatchOptions(options);
      return this.#hub.watch(sessionId, options);
    };
    return { [Symbol.asyncIterator]: () => openLater(open) };
  }

  async lease(sessionId: string, runId: string, ttlMs: number): Promise<Lease> {
    const driver = this.#driverFor(sessionId);
    checkName(runId, "a run");
    checkCount(ttlMs, "ttlMs", 1, LEASE_TTL_MS_MAX);
    if ((await driver.head(sessionId)) === null) throw new SessionNotFoundError(sessionId);
    this.#openDriver();
    const info = await this.#leases.acquire(sessionId, runId, ttlMs);
    return heldLease(info, ttlMs, this.#leases, () => this.#closing !== null);
  }

  async leaseOf(sessionId: string): Promise<LeaseInfo | null> {
    this.#driverFor(sessionId);
    return this.#leases.current(sessionId);
  }

  async aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    const driver = this.#openDriver();
    const checked = checkAggregateQuery(query);
    const rows = await (driver.aggregate?.(checked) ?? aggregateByScan(this.#scan, checked));
    return sortRows(rows, checked.groupBy);
  }

  async ping(): Promise<void> {
    return this.#openDriver().ping();
  }

  close(): Promise<void> {
    if (this.#closing === null) {
      this.#hub.close();
      this.#closing = (async () => this.#driver.close())();
    }
    return this.#closing;
  }

  /** A driver that keeps no leases cannot tell by itself who has a session. */
  #driverQuery(filter: DriverQuery): DriverQuery {
    const leases = this.#processLeases;
    return leases === null || filter.runs === undefined
      ? filter
      : { ...filter, isHeld: (sessionId) => leases.tokenOf(sessionId) !== null };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #openDriver(): StoreDriver {
    if (this.#closing !== null) throw storeClosed();
    return this.#driver;
  }

  #driverFor(sessionId: string): StoreDriver {
    const driver = this.#openDriver();
    checkSessionId(sessionId);
    return driver;
  }

  #appendChecked(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const driver = this.#openDriver();
    const { leaseToken, ...others } = options.guard ?? {};
    if (leaseToken === undefined || this.#processLeases === null) return driver.append(sessionId, drafts, options);
    // The driver sees no token, and takes this word for it.
    const asked = { ...options, guard: { ...others, holds: true } } as const;
    if (this.#processLeases.tokenOf(sessionId) === leaseToken) return driver.append(sessionId, drafts, asked);
    // A version that no session has lets nothing through but an exact retry, as a driver with leases of its own would.
    return driver.append(sessionId, drafts, { ...asked, expectedVersion: NO_SUCH_VERSION }).catch((error: unknown) => {
      throw error instanceof SessionConflictError ? new LeaseLostError(sessionId, leaseToken) : error;
    });
  }

  async #appendNothing(sessionId: string): Promise<AppendResult> {
    const head = await this.#driver.head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    return { version: head.version, entries: [], head };
  }
}

function capabilitiesOf(driver: StoreDriver): StoreCapabilities {
  const declared = driver.capabilities;
  return Object.freeze({
    ...declared,
    search: driver.search === undefined ? "scan" : declared.search,
    // Where no one else can append, waking our own watchers is all there is to do.
    watch: declared.shared ? declared.watch : "push",
    lease: driver.leases === undefined ? "process" : declared.lease,
    aggregate: driver.aggregate === undefined ? "scan" : declared.aggregate,
  });
}

/** Plans the first entries of a session as its driver will, to see what their variables take. */
function checkVariables(header: SessionHeader, drafts: readonly CheckedDraft[], variablesBytesMax: number): void {
  if (!drafts.some(({ body }) => body.type === "variables")) return;
  const options = { verbatim: true, guard: { variablesBytesMax } };
  planNow({ head: emptyHead(header), drafts, options, now: header.createdAt }, () => NOTHING_FOUND);
}
