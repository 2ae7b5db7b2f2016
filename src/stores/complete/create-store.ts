import { checkArgument, checkOptionsOf, isObject, type KeysOf } from "../../session/check-arguments.ts";
import {
  NOTHING_FOUND,
  PLAN_BEFORE,
  planNow,
  PlannedTooLate,
  type PlanOptions,
  type StoredEntry,
} from "../../session/log/append-plan.ts";
import { type CheckedDraft, checkDrafts } from "../../session/log/draft.ts";
import type { Entry, EntryBody, EntryDraft } from "../../session/log/entry.ts";
import { LeaseLostError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../../session/log/fold.ts";
import { checkHeader, rootIdOf, type SessionHeader } from "../../session/log/header.ts";
import { checkName, checkSessionId } from "../../session/id.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import { hasWaitingRun } from "../../session/log/open-runs.ts";
import { parseSearch } from "../../session/search.ts";
import type { LedgerTable } from "../../session/ledger.ts";
import { NO_SETTINGS, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type { LeaseTable, StoreDriver, StoredLease } from "../../session/store-driver.ts";
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
import { sessionExists } from "./session-exists.ts";
import { canonicalAttachments, type ExtractedBlobs, extractBlobs, holdsAttachments } from "../blobs/attachments.ts";
import { findBlobOf } from "../blobs/message-blobs.ts";
import { defined } from "../../internal/defined.ts";
import { sameJson } from "../../internal/json.ts";
import type {
  BlobInput,
  BlobOptions,
  BlobRef,
  ReadBlobOptions,
  StoredBlob,
  SweepBlobsOptions,
  SweptBlobs,
} from "../../session/blob.ts";
import type { Attachment, InlineAttachment, Message } from "../../session/message.ts";
import { inlineBlob, isInline, SessionBlobs } from "./session-blobs.ts";
import { aggregateSessions } from "./aggregate-sessions.ts";
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
import { forListing } from "./head-weight.ts";
import { listPage } from "./list-page.ts";
import { listedHeads } from "./list-pages.ts";
import { searchByScan } from "./search-by-scan.ts";
import { storeClosed } from "./store-closed.ts";
import { sweepBlobs } from "./sweep-blobs.ts";
import { WatchHub } from "./watch-hub.ts";

const JSON_ENTRIES_DEFAULT = 100;
/** The largest page of a server, and one more entry, which shows whether there is a next page. */
const JSON_ENTRIES_MAX = 1001;
/** With more drafts than this, `create` yields to the event loop between checking and writing them. */
const DRAFTS_AT_ONCE = 1000;
/**
 * An erasure waits twice as long between finding a blob and reading the logs. An append that is planned later than this after it
 * has renewed its blobs is made again, so that its entries are in the log before.
 */
const BLOBS_HELD_MS = 500;
const APPENDS_MAX = 20;
const NO_OPTIONS: AppendOptions = Object.freeze({});

/**
 * Makes a store from a driver. The store checks every argument, pages listings, refuses calls after `close`, aggregates, and
 * provides search and watching if the driver has none.
 */
export function createStore(driver: StoreDriver, options: BlobOptions = {}): SessionStore {
  checkArgument(isObject(driver) && isObject(driver.capabilities), driver, "createStore", "a driver with capabilities");
  return new DriverStore(driver, options);
}

class DriverStore implements SessionStore {
  readonly capabilities: StoreCapabilities;
  readonly #driver: StoreDriver;
  readonly #hub: WatchHub;
  readonly #blobs: SessionBlobs;
  #closing: Promise<void> | null = null;

  constructor(driver: StoreDriver, options: BlobOptions) {
    this.#driver = driver;
    this.#hub = new WatchHub(driver);
    this.#blobs = new SessionBlobs(driver, options);
    this.capabilities = capabilitiesOf(driver, this.#blobs.blobs !== null);
  }

  async create(header: SessionHeader, options: CreateOptions = {}): Promise<SessionHead> {
    this.#openDriver();
    checkMakeOptions(options, "create");
    const { entries: given = [], variablesBytesMax, findBlob, ...limits } = options;
    const extracted = extract(given, this.#blobs.inlineMax);
    const entries = extracted?.drafts ?? given;
    const drafts = checkDrafts(entries, { verbatim: true });
    const checked = checkHeader(header);
    if (variablesBytesMax !== undefined) checkVariables(checked, drafts, variablesBytesMax);
    // Checking and writing many entries take long each, so yield to the event loop between them.
    if (drafts.length > DRAFTS_AT_ONCE) await new Promise((resolve) => setImmediate(resolve));
    if (extracted !== null) {
      await this.#refuseTaken(checked.id);
      await this.#blobs.store(checked, extracted, findBlob ?? findBlobOf(given.map(messageOf)));
    }
    return this.#openDriver().create(checked, drafts, limits);
  }

  /**
   * Refuses an id that is in use before blobs are looked for and stored: they would be those of the other session.
   *
   * @throws {SessionError} `SESSION_EXISTS`.
   */
  async #refuseTaken(sessionId: string): Promise<void> {
    if ((await this.#driver.head(sessionId)) !== null) throw sessionExists(sessionId);
    for await (const _ of this.#driver.read(sessionId, readRange({ limit: 1, deleted: true })))
      throw sessionExists(sessionId);
  }

  // Not an async function, because an append is a hot path: the caller awaits the driver's own promise.
  append(sessionId: string, drafts: readonly EntryDraft[], options: AppendOptions = NO_OPTIONS): Promise<AppendResult> {
    try {
      this.#driverFor(sessionId);
      if (options !== NO_OPTIONS) checkAppendOptions(options);
      const extracted = extract(drafts, this.#blobs.inlineMax);
      const entries = extracted?.drafts ?? drafts;
      const checked = checkDrafts(entries, { verbatim: options.verbatim === true, by: options.by, run: options.run });
      if (checked.length === 0) return this.#appendNothing(sessionId);
      const comparable = checked.some(needsComparison) ? checked.map(comparableDraft) : checked;
      if (extracted === null) return this.#append(sessionId, comparable, options);
      const findBlob = options.findBlob ?? findBlobOf(drafts.map(messageOf));
      return this.#appendWithBlobs(sessionId, comparable, extracted, { ...options, ...defined({ findBlob }) });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Stores the blobs of drafts, and then the entries. */
  async #appendWithBlobs(
    sessionId: string,
    drafts: readonly CheckedDraft[],
    extracted: ExtractedBlobs,
    options: AppendOptions,
  ): Promise<AppendResult> {
    const head = await this.#driver.head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    let renewedMs = performance.now();
    await this.#blobs.store(head.header, extracted, options.findBlob);
    for (let attempt = 1; ; attempt++) {
      this.#openDriver();
      try {
        const limited: PlanOptions = { ...options, [PLAN_BEFORE]: renewedMs + BLOBS_HELD_MS };
        const result = await this.#append(sessionId, drafts, limited);
        if (performance.now() - renewedMs > BLOBS_HELD_MS) await this.#blobs.renew(head.header, extracted.contents);
        return result;
      } catch (error) {
        // Storing its blobs, or waiting for other writers, took long.
        if (!(error instanceof PlannedTooLate) || attempt === APPENDS_MAX) throw error;
        renewedMs = performance.now();
        await this.#blobs.renew(head.header, extracted.contents, extracted.references);
      }
    }
  }

  #append(sessionId: string, checked: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    try {
      const started = this.#hub.started(sessionId);
      const appending =
        started === null
          ? this.#driver.append(sessionId, checked, options)
          : started.then(() => this.#openDriver().append(sessionId, checked, options));
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
    return this.#driverFor(sessionId).head(sessionId);
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const driver = this.#openDriver();
    checkArgument(Array.isArray(sessionIds), sessionIds, "heads", "a list of ids");
    for (const id of sessionIds) checkSessionId(id);
    return driver.heads?.(sessionIds) ?? Promise.all(sessionIds.map((id) => driver.head(id)));
  }

  read(sessionId: string, options: ReadOptions = {}): AsyncIterable<Entry> {
    return { [Symbol.asyncIterator]: () => this.#read(sessionId, options) };
  }

  async readJson(sessionId: string, options: ReadJsonOptions = {}): Promise<readonly string[]> {
    const driver = this.#driverFor(sessionId);
    checkArgument(isObject(options), options, "readJson", "an object of options");
    const { limit = JSON_ENTRIES_DEFAULT, charactersMax = Number.MAX_SAFE_INTEGER } = options;
    checkCount(charactersMax, "charactersMax");
    checkCount(limit, "limit", 0, JSON_ENTRIES_MAX);
    const range = readRange({ ...options, limit }, "readJson");
    const read = driver.readTexts?.(sessionId, range) ?? driver.read(sessionId, range);
    const texts: string[] = [];
    let characters = 0;
    for await (const each of read) {
      const text = typeof each === "string" ? each : JSON.stringify(each);
      texts.push(text);
      characters += text.length;
      if (characters > charactersMax) break;
    }
    return texts;
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    return (await this.#find(sessionId, entryId))?.entry ?? null;
  }

  async blob(
    sessionId: string,
    part: string | Attachment | BlobRef,
    options: ReadBlobOptions = {},
  ): Promise<StoredBlob | null> {
    const driver = this.#driverFor(sessionId);
    const blob = typeof part === "string" ? part : (part as Partial<BlobRef>)?.blob;
    checkArgument(typeof blob === "string" || isInline(part), part, "blob", "an image or file, or the name of a blob");
    if (typeof blob !== "string") return inlineBlob(part as InlineAttachment);
    checkOptionsOf(options, { root: true } satisfies KeysOf<ReadBlobOptions>, "blob");
    const { root } = options;
    if (root !== undefined) {
      checkSessionId(root);
      return this.#blobs.find(root, blob);
    }
    const head = await driver.head(sessionId);
    return head === null ? null : this.#blobs.find(rootIdOf(head.header), blob);
  }

  async putBlob(sessionId: string, bytes: BlobInput): Promise<BlobRef> {
    const head = await this.#driverFor(sessionId).head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    return this.#blobs.put(head.header, bytes);
  }

  async sweepBlobs(options: SweepBlobsOptions = {}): Promise<SweptBlobs> {
    const driver = this.#openDriver();
    checkOptionsOf(
      options,
      { graceMs: true, scope: true, signal: true } satisfies KeysOf<SweepBlobsOptions>,
      "sweepBlobs",
    );
    if (options.graceMs !== undefined) checkCount(options.graceMs, "graceMs");
    for (const id of options.scope === undefined ? [] : [options.scope].flat()) checkSessionId(id);
    const { blobs } = this.#blobs;
    return blobs === null ? { blobs: 0, removed: 0, bytes: 0 } : sweepBlobs(driver, blobs, options);
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    return (await this.#find(sessionId, entryId))?.path ?? null;
  }

  async settings(sessionId: string, path: PathSummary): Promise<Settings> {
    const driver = this.#driverFor(sessionId);
    checkArgument(isObject(path) && path.settings !== undefined, path, "settings", "the path of a head");
    const { settings } = path;
    if (settings === null) return NO_SETTINGS;
    return driver.settings(
      sessionId,
      settings.change === undefined ? await this.#settingsAt(sessionId, settings.seq) : settings,
    );
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions = {}): Promise<SessionHead> {
    const driver = this.#driverFor(sourceId);
    checkMakeOptions(options, "fork");
    return driver.fork(sourceId, checkHeader(header), options);
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    const { listing } = this.#openDriver();
    const { filter, limit, after } = checkQuery(query);
    const page = await listPage(listing, filter, limit, after);
    return { ...page, items: page.items.map(forListing) };
  }

  async count(query: SessionQuery = {}): Promise<number> {
    return this.#openDriver().listing.count(checkQuery(query).filter);
  }

  async search(text: string, query: SessionQuery = {}): Promise<SearchHit[]> {
    const driver = this.#openDriver();
    const terms = parseSearch(text);
    const { filter, limit } = checkQuery(query);
    const found = await (driver.search?.(terms, { ...filter, limit }) ??
      searchByScan(listedHeads(this, filter), (sessionId) => this.read(sessionId), terms, limit));
    return found.map((hit) => ({ ...hit, head: forListing(hit.head) }));
  }

  async delete(sessionId: string): Promise<boolean> {
    const driver = this.#driverFor(sessionId);
    const deleted = await driver.delete(sessionId);
    this.#hub.wake(sessionId);
    return deleted;
  }

  async undelete(sessionId: string, options: UndeleteOptions = {}): Promise<boolean> {
    const driver = this.#driverFor(sessionId);
    checkMakeOptions(options, "undelete");
    return driver.undelete(sessionId, options);
  }

  async purge(which: string | PurgeQuery): Promise<number> {
    return this.#openDriver().purge(checkPurge(which));
  }

  get eraser(): StoreEraser {
    const { eraser } = this.#openDriver();
    if (eraser !== undefined) return eraser;
    throw new SessionError("NOT_SUPPORTED", "This store cannot erase: its driver has no eraser.");
  }

  get ledger(): LedgerTable {
    const { ledger } = this.#openDriver();
    if (ledger !== undefined) return ledger;
    throw new SessionError("NOT_SUPPORTED", "This store cannot keep budgets: its driver has no ledger.");
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#openDriver().checkpoints.save(checkCheckpoint(checkpoint));
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    const driver = this.#openDriver();
    checkName(id, "a checkpoint");
    return driver.checkpoints.load(id);
  }

  async listCheckpoints(sessionId: string, options: { readonly deleted?: boolean } = {}): Promise<Checkpoint[]> {
    const driver = this.#driverFor(sessionId);
    checkArgument(isObject(options), options, "listCheckpoints", "an object of options");
    return driver.checkpoints.list(sessionId, options.deleted === true);
  }

  async deleteCheckpoint(id: string): Promise<boolean> {
    const driver = this.#openDriver();
    checkName(id, "a checkpoint");
    return driver.checkpoints.delete(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    const { listing } = this.#openDriver();
    checkTime(before, "before");
    checkCount(limit, "limit", 1, PAGE_ITEMS_MAX);
    for (let most = limit; ; most *= 2) {
      const heads = await listing.idleSince(before, most);
      const idle = heads.filter(({ openRuns }) => !hasWaitingRun(openRuns));
      if (idle.length >= limit || heads.length < most) return idle.slice(0, limit).map(forListing);
    }
  }

  watch(sessionId: string, options: WatchOptions = {}): AsyncIterable<Entry> {
    // Called by the first `next`: a watch that begins after `close` is refused. A running one ends when the store is closed.
    const begin = (): void => {
      this.#driverFor(sessionId);
      checkWatchOptions(options);
    };
    return { [Symbol.asyncIterator]: () => this.#hub.watch(sessionId, options, begin) };
  }

  async lease(sessionId: string, runId: string, ttlMs: number): Promise<Lease> {
    const driver = this.#driverFor(sessionId);
    checkName(runId, "a run");
    checkCount(ttlMs, "ttlMs", 1, LEASE_TTL_MS_MAX);
    if ((await driver.head(sessionId)) === null) throw new SessionNotFoundError(sessionId);
    this.#openDriver();
    const taken = await driver.leases.acquire(sessionId, runId, ttlMs);
    return leaseHandle(leaseInfo(sessionId, taken), ttlMs, driver.leases, () => this.#closing !== null);
  }

  async leaseOf(sessionId: string): Promise<LeaseInfo | null> {
    const lease = await this.#driverFor(sessionId).leases.current(sessionId);
    return lease === null ? null : leaseInfo(sessionId, lease);
  }

  async aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    this.#openDriver();
    const { groupBy, ...asked } = checkAggregateQuery(query);
    const [rows = []] = await aggregateSessions(this, asked, [groupBy]);
    return rows;
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

  /** Not a generator: the caller awaits the promises of the driver's own iterator, which takes half as long. */
  #read(sessionId: string, options: ReadOptions): AsyncIterator<Entry> {
    let entries: AsyncIterator<Entry> | null = null;
    return {
      next: () => {
        try {
          this.#openDriver();
          entries ??= this.#driverFor(sessionId).read(sessionId, readRange(options))[Symbol.asyncIterator]();
          return entries.next();
        } catch (error) {
          // After a rejected `next()`, callers never call `return()`, so close the driver's iterator here.
          return Promise.resolve(entries?.return?.()).then(() => Promise.reject(error));
        }
      },
      return: async () => (await entries?.return?.()) ?? { done: true, value: undefined },
    };
  }

  async #find(sessionId: string, entryId: string): Promise<StoredEntry | null> {
    const driver = this.#driverFor(sessionId);
    checkName(entryId, "an entry");
    return driver.find(sessionId, entryId);
  }

  /** The settings of the node at a position. @throws {SessionNotFoundError} if the session was deleted meanwhile. */
  async #settingsAt(sessionId: string, seq: number): Promise<SettingsNode> {
    for await (const { id } of this.#driver.read(sessionId, {
      after: seq - 1,
      before: seq + 1,
      limit: 1,
      reverse: false,
    })) {
      const settings = (await this.#driver.find(sessionId, id))?.path?.settings ?? null;
      if (settings !== null) return settings;
    }
    throw new SessionNotFoundError(sessionId);
  }

  async #appendNothing(sessionId: string): Promise<AppendResult> {
    const head = await this.#driver.head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    return { version: head.version, entries: [], head };
  }
}

function capabilitiesOf(driver: StoreDriver, blobs: boolean): StoreCapabilities {
  const declared = driver.capabilities;
  return Object.freeze({
    ...declared,
    blobs,
    search: driver.search === undefined ? "scan" : declared.search,
    // If no other process can append, the store notifies its own watchers of every append.
    watch: declared.shared ? declared.watch : "push",
    ledger: driver.ledger !== undefined,
  });
}

/** The blobs of drafts; null if they have none, or if the drafts are invalid: then the check of drafts reports the error. */
function extract(drafts: readonly EntryDraft[], inlineMax: number): ExtractedBlobs | null {
  try {
    return extractBlobs(drafts, inlineMax);
  } catch {
    return null;
  }
}

/** Only an entry whose id was given can be there already. */
function needsComparison({ fresh, body }: CheckedDraft): boolean {
  return !fresh && holdsAttachments(body);
}

function messageOf(draft: EntryDraft): Message | undefined {
  return draft.type === "message" || draft.type === "context_edit" ? (draft.message ?? undefined) : undefined;
}

/** A draft that is the same as a stored entry with the same images and files, whatever form each of them has. */
function comparableDraft(draft: CheckedDraft): CheckedDraft {
  if (!needsComparison(draft)) return draft;
  const isSame = (stored: EntryBody): boolean =>
    sameJson(canonicalAttachments(draft.body), canonicalAttachments(stored));
  return { ...draft, isSame };
}

/** Checks the size of the variables in the first entries of a session, by planning them as the driver will. */
function checkVariables(header: SessionHeader, drafts: readonly CheckedDraft[], variablesBytesMax: number): void {
  if (!drafts.some(({ body }) => body.type === "variables")) return;
  const options = { verbatim: true, guard: { variablesBytesMax } };
  planNow({ head: emptyHead(header), drafts, options, now: header.createdAt }, () => NOTHING_FOUND);
}

/** Converts a stored lease to the form that callers get. */
function leaseInfo(sessionId: string, { runId, token, untilMs }: StoredLease): LeaseInfo {
  return { sessionId, runId, token, expiresAt: new Date(untilMs).toISOString() };
}

/** The lease object that its holder gets, with methods to renew and release it. */
function leaseHandle(info: LeaseInfo, ttlMs: number, table: LeaseTable, isClosed: () => boolean): Lease {
  const { sessionId, runId, token } = info;
  let { expiresAt } = info;
  // After `close` the lease expires by itself, so a late release does nothing and is not an error.
  const release = async (): Promise<void> => {
    if (!isClosed()) await table.release(sessionId, token);
  };
  return {
    sessionId,
    runId,
    token,
    get expiresAt() {
      return expiresAt;
    },
    async renew(nextMs = ttlMs) {
      if (isClosed()) throw storeClosed();
      checkCount(nextMs, "ttlMs", 1, LEASE_TTL_MS_MAX);
      const renewed = await table.renew(sessionId, token, nextMs);
      if (renewed === null) throw new LeaseLostError(sessionId, token);
      expiresAt = new Date(renewed).toISOString();
    },
    release,
    [Symbol.asyncDispose]: release,
  };
}
