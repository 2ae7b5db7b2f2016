import { defined } from "../internal/defined.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { checkRequests, describeOpen } from "../session/log/append-guard.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { SessionBusyError } from "../session/errors.ts";
import type { PathSummary, SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { LedgerTable } from "../session/ledger.ts";
import { matchesRuns, type OpenRun, stepRuns } from "../session/log/open-runs.ts";
import { hasBegun } from "../session/log/run-fold.ts";
import type { Settings } from "../session/log/settings.ts";
import type {
  BlobInput,
  BlobRef,
  ReadBlobOptions,
  StoredBlob,
  SweepBlobsOptions,
  SweptBlobs,
} from "../session/blob.ts";
import type { Attachment } from "../session/message.ts";
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
} from "../session/store.ts";

/** The prefix of tombstone keys. Tombstones can only refuse content, so those of any writer are accepted. */
const TOMBSTONES = "erased";
const NO_RUNS: readonly OpenRun[] = Object.freeze([]);

/**
 * A view of an untrusted store for one process: a store that another person may have written, from which only the words of
 * messages are used.
 *
 * - Every entry counts as inherited, except those that were appended through this view. So no run that the store records is
 *   open, no approval in it counts, no queued input is delivered, and a call without a result never runs.
 * - The sandbox in a session's header is hidden, unless the session was created through this view. The snapshots of
 *   checkpoints are hidden too.
 * - Entries that are appended through the view are written to the store as usual, and are not inherited until the view is
 *   closed. The next process that opens the store untrusted sees them as inherited, too.
 * - Reading never writes to the store.
 */
export function viewAsInherited(store: SessionStore): SessionStore {
  const view = new InheritedView(store);
  // Also forward methods that only some stores have, such as the one that frees disk space.
  const more = Object.entries(store).filter(([name, value]) => typeof value === "function" && !(name in view));
  return Object.assign(view, Object.fromEntries(more));
}

class InheritedView implements SessionStore {
  readonly capabilities: StoreCapabilities;
  readonly #store: SessionStore;
  readonly #logs = new Map<string, AppendedLog>();
  readonly #checkpointIds = new Set<string>();
  readonly #markKeys = new Set<string>();

  constructor(store: SessionStore) {
    this.#store = store;
    this.capabilities = store.capabilities;
  }

  async create(header: SessionHeader, options?: CreateOptions): Promise<SessionHead> {
    const head = await this.#store.create(header, options);
    this.#logs.set(header.id, AppendedLog.created(head, 0));
    return this.#viewHead(head);
  }

  async append(sessionId: string, drafts: readonly EntryDraft[], options: AppendOptions = {}): Promise<AppendResult> {
    const log = this.#logs.get(sessionId) ?? new AppendedLog();
    this.#logs.set(sessionId, log);
    return log.serialize(async () => {
      const before = (await this.#store.head(sessionId))?.version ?? 0;
      // With new ids the entries of these drafts cannot be confused with entries that the store had before.
      const named = drafts.map((draft) => (draft?.id === undefined ? { ...draft, id: uuidv7() } : draft));
      const result = await this.#store.append(sessionId, named, guardedOptions(sessionId, log, options));
      log.add(result.entries.filter(({ seq }) => seq >= before));
      const head = this.#viewHead(result.head);
      const entries = result.entries.map((entry) => viewEntry(entry, log));
      checkRequests(head, entries);
      return { ...result, entries, head };
    });
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    const head = await this.#store.head(sessionId);
    return head === null ? null : this.#viewSettled(head);
  }

  async heads(sessionIds: readonly string[]): Promise<readonly (SessionHead | null)[]> {
    const heads = await this.#store.heads(sessionIds);
    return Promise.all(heads.map((head) => (head === null ? null : this.#viewSettled(head))));
  }

  read(sessionId: string, options?: ReadOptions): AsyncIterable<Entry> {
    return this.#viewEntries(sessionId, this.#store.read(sessionId, options));
  }

  async readJson(sessionId: string, options?: ReadJsonOptions): Promise<readonly string[]> {
    const texts = await this.#store.readJson(sessionId, options);
    const log = await this.#settledLog(sessionId);
    return texts.map((text) => JSON.stringify(viewEntry(JSON.parse(text) as Entry, log)));
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    const entry = await this.#store.getEntry(sessionId, entryId);
    return entry === null ? null : viewEntry(entry, await this.#settledLog(sessionId));
  }

  blob(sessionId: string, part: string | Attachment | BlobRef, options?: ReadBlobOptions): Promise<StoredBlob | null> {
    return this.#store.blob(sessionId, part, options);
  }

  putBlob(sessionId: string, bytes: BlobInput): Promise<BlobRef> {
    return this.#store.putBlob(sessionId, bytes);
  }

  sweepBlobs(options?: SweepBlobsOptions): Promise<SweptBlobs> {
    return this.#store.sweepBlobs(options);
  }

  path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    return this.#store.path(sessionId, entryId);
  }

  settings(sessionId: string, path: PathSummary): Promise<Settings> {
    return this.#store.settings(sessionId, path);
  }

  async fork(sourceId: string, header: SessionHeader, options?: ForkOptions): Promise<SessionHead> {
    const head = await this.#store.fork(sourceId, header, options);
    this.#logs.set(head.header.id, AppendedLog.created(head, head.version));
    return this.#viewHead(head);
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    const page = await this.#store.list(query);
    const items = await Promise.all(page.items.map((head) => this.#viewSettled(head)));
    // The store also finds sessions by runs that the view hides. Drop those; the page may then have fewer items than `limit`.
    const matches = ({ openRuns }: SessionHead): boolean =>
      matchesRuns(openRuns, query, () => query.runs === "running");
    return { ...page, items: items.filter(matches) };
  }

  async count(query: SessionQuery = {}): Promise<number> {
    if (query.runs === undefined && query.dueBefore === undefined) return this.#store.count(query);
    let count = 0;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: SessionPage = await this.list({ ...query, ...(cursor !== undefined && { cursor }) });
      count += page.items.length;
      cursor = page.next;
    }
    return count;
  }

  async search(text: string, query?: SessionQuery): Promise<SearchHit[]> {
    const hits = await this.#store.search(text, query);
    return Promise.all(hits.map(async (hit) => ({ ...hit, head: await this.#viewSettled(hit.head) })));
  }

  delete(sessionId: string): Promise<boolean> {
    return this.#store.delete(sessionId);
  }

  undelete(sessionId: string, options?: UndeleteOptions): Promise<boolean> {
    return this.#store.undelete(sessionId, options);
  }

  purge(which: string | PurgeQuery): Promise<number> {
    return this.#store.purge(which);
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    const known = await this.#store.loadCheckpoint(checkpoint.id);
    await this.#store.saveCheckpoint(checkpoint);
    if (known === null) this.#checkpointIds.add(checkpoint.id);
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    const checkpoint = await this.#store.loadCheckpoint(id);
    return checkpoint === null ? null : this.#viewCheckpoint(checkpoint);
  }

  async listCheckpoints(sessionId: string, options?: { readonly deleted?: boolean }): Promise<Checkpoint[]> {
    const checkpoints = await this.#store.listCheckpoints(sessionId, options);
    return checkpoints.map((checkpoint) => this.#viewCheckpoint(checkpoint));
  }

  deleteCheckpoint(id: string): Promise<boolean> {
    return this.#store.deleteCheckpoint(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    const heads = await this.#store.listExpired(before, limit);
    return Promise.all(heads.map((head) => this.#viewSettled(head)));
  }

  watch(sessionId: string, options?: WatchOptions): AsyncIterable<Entry> {
    return this.#viewEntries(sessionId, this.#store.watch(sessionId, options));
  }

  lease(sessionId: string, runId: string, ttlMs: number): Promise<Lease> {
    return this.#store.lease(sessionId, runId, ttlMs);
  }

  leaseOf(sessionId: string): Promise<LeaseInfo | null> {
    return this.#store.leaseOf(sessionId);
  }

  aggregate(query: AggregateQuery): Promise<AggregateRow[]> {
    return this.#store.aggregate(query);
  }

  get eraser(): StoreEraser {
    const { eraser } = this.#store;
    return {
      replace: (sessionId, version, entries) => this.#replace(eraser, sessionId, version, entries),
      replaceCheckpoint: async (checkpoint) => {
        // The caller read the checkpoint through this view, which hides its snapshot: keep the stored one.
        const stored = await this.#store.loadCheckpoint(checkpoint.id);
        return eraser.replaceCheckpoint({ ...checkpoint, ...defined({ sandboxSnapshot: stored?.sandboxSnapshot }) });
      },
      ...boundMethods(eraser),
      readMarks: (keys) => this.#readMarks(eraser, keys),
      writeMarks: async (marks) => {
        await eraser.writeMarks(marks);
        for (const key of marks.keys()) this.#markKeys.add(key);
      },
    };
  }

  get ledger(): LedgerTable {
    return this.#store.ledger;
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The log of a session that this view has appended to, after all its pending appends have settled. */
  async #settledLog(sessionId: string): Promise<AppendedLog | undefined> {
    const log = this.#logs.get(sessionId);
    await log?.settled();
    return log;
  }

  async *#viewEntries(sessionId: string, entries: AsyncIterable<Entry>): AsyncGenerator<Entry> {
    for await (const entry of entries) yield viewEntry(entry, await this.#settledLog(sessionId));
  }

  async #viewSettled(head: SessionHead): Promise<SessionHead> {
    await this.#settledLog(head.header.id);
    return this.#viewHead(head);
  }

  #viewHead(head: SessionHead): SessionHead {
    const log = this.#logs.get(head.header.id);
    const header = log?.isCreatedHere === true ? head.header : Object.freeze({ ...head.header, sandbox: null });
    return Object.freeze({ ...head, header, openRuns: log?.openRuns ?? NO_RUNS });
  }

  #viewCheckpoint(checkpoint: Checkpoint): Checkpoint {
    if (this.#checkpointIds.has(checkpoint.id)) return checkpoint;
    const { sandboxSnapshot: _, ...position } = checkpoint;
    return position;
  }

  /** Removes the `inherited` marks that only this view has added before entries are written back. */
  async #replace(eraser: StoreEraser, sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const stamped = new Set<number>();
    for await (const { seq, inherited } of this.#store.read(sessionId)) if (inherited === true) stamped.add(seq);
    const plain = entries.map((entry): Entry => {
      const { inherited: _, ...rest } = entry;
      return stamped.has(entry.seq) ? entry : (rest as Entry);
    });
    return eraser.replace(sessionId, version, plain);
  }

  /**
   * Hides marks that were not written through this view: plans of erasures are not carried out, and tombstones are not
   * copied to other stores. A tombstone that is looked up by its key is shown.
   */
  async #readMarks(eraser: StoreEraser, keys: readonly string[] | undefined): Promise<ReadonlyMap<string, string>> {
    const isTombstone = (key: string): boolean => key === TOMBSTONES || key.startsWith(`${TOMBSTONES}/`);
    const marks = await eraser.readMarks(keys);
    return new Map([...marks].filter(([key]) => this.#markKeys.has(key) || (keys !== undefined && isTombstone(key))));
  }
}

/** The entries that a view has appended to one session. */
class AppendedLog {
  /** Whether the session, and so its header, was created through the view. */
  readonly isCreatedHere: boolean;
  openRuns: readonly OpenRun[] = NO_RUNS;
  /** The positions of the entries as ranges; `end` is exclusive, and adjacent ranges are merged. */
  readonly #ranges: { start: number; end: number }[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #pending = 0;

  constructor(isCreatedHere = false) {
    this.isCreatedHere = isCreatedHere;
  }

  /** The log of a session that was created through the view. Its entries from position `start` on are not inherited. */
  static created(head: SessionHead, start: number): AppendedLog {
    const log = new AppendedLog(true);
    log.#ranges.push({ start, end: head.version });
    log.openRuns = head.openRuns;
    return log;
  }

  has(seq: number): boolean {
    return this.#ranges.some(({ start, end }) => seq >= start && seq < end);
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { seq } = entry;
      if (this.has(seq)) continue;
      const range = this.#ranges.at(-1);
      if (range?.end === seq) range.end = seq + 1;
      else this.#ranges.push({ start: seq, end: seq + 1 });
      if (entry.inherited !== true) this.openRuns = stepRuns(this.openRuns, entry);
    }
  }

  /** Runs tasks one after another, so that what a task has read cannot change before it has written. */
  serialize<T>(task: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    const done = this.#last.then(task).finally(() => {
      this.#pending -= 1;
    });
    this.#last = done.catch(() => {});
    return done;
  }

  async settled(): Promise<void> {
    while (this.#pending > 0) await this.#last;
  }
}

function viewEntry(entry: Entry, log: AppendedLog | undefined): Entry {
  if (entry.inherited === true || log?.has(entry.seq) === true) return entry;
  return Object.freeze({ ...entry, inherited: true });
}

/** The optional methods of an eraser. */
const OPTIONAL_METHODS = ["authored", "heirs", "remove", "leftovers", "clearStatistics", "rewrite"] as const;

function boundMethods(eraser: StoreEraser): Partial<StoreEraser> {
  const bound = OPTIONAL_METHODS.map((name) => [name, eraser[name]?.bind(eraser)] as const);
  return Object.fromEntries(bound.filter(([, method]) => method !== undefined));
}

/** The options of an append whose guard ignores the runs that the view hides, and checks those that it has started. */
function guardedOptions(sessionId: string, { openRuns }: AppendedLog, options: AppendOptions): AppendOptions {
  const { noOpenRun, ...guard } = options.guard ?? {};
  const [open] = openRuns;
  if (noOpenRun === true && open !== undefined) throw new SessionBusyError(sessionId, describeOpen(open));
  const begun = openRuns.some(hasBegun);
  return { ...options, guard: begun ? guard : { ...guard, holds: true } };
}
