import { planFirst, planNow, type StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { type Entry, entryCharacters } from "../../session/log/entry.ts";
import { SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { LedgerHour, LedgerPage, LedgerTable } from "../../session/ledger.ts";
import { isOpen } from "../../session/query.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type {
  CheckpointTable,
  DriverPurge,
  ReadRange,
  SessionListing,
  StoreDriver,
} from "../../session/store-driver.ts";
import type {
  AppendOptions,
  AppendResult,
  ForkOptions,
  Checkpoint,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
} from "../../session/store.ts";
import { checkSessionLimits, sessionLimitsOf } from "../complete/session-limits.ts";
import { planRewrite } from "../complete/plan-rewrite.ts";
import { ProcessLeases } from "../complete/process-leases.ts";
import { ScannedListing } from "../complete/scanned-listing.ts";
import { checkCheckpointId, oldestFirst } from "../complete/valid-checkpoint.ts";
import { sessionExists } from "../complete/session-exists.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { nextSlice } from "../../internal/long-work.ts";
import { MemoryBlobs } from "./memory-blobs.ts";
import { lookUpWanted, MemoryLog } from "./memory-log.ts";

/** One stored session. */
interface MemorySession {
  /** Frozen, because callers get this object itself. */
  head: SessionHead;
  log: MemoryLog;
  deletedAt: string | null;
}

/** How many characters a read yields before it lets other tasks of this process run. */
const SLICE_CHARACTERS = 256 * 1024;

/** Keeps sessions in the memory of this process. Every operation is synchronous, so that no two can interleave. */
export class MemoryDriver implements StoreDriver {
  readonly appendsAtOnce = true;
  readonly capabilities: StoreCapabilities = {
    durable: false,
    shared: false,
    forkByReference: true,
    search: "scan",
    watch: "push",
    lease: "process",
  };
  readonly eraser: StoreEraser = {
    replace: (sessionId, version, entries) => this.#replace(sessionId, version, entries),
    replaceCheckpoint: async (checkpoint) => {
      if (this.#checkpoint(checkpoint.id) === null) return false;
      this.#checkpoints.set(checkpoint.id, checkpoint);
      return true;
    },
    readMarks: async (keys = [...this.#marks.keys()]) =>
      new Map(keys.flatMap((key) => (this.#marks.has(key) ? [[key, this.#marks.get(key) as string]] : []))),
    writeMarks: async (changes) => {
      for (const [key, value] of changes) {
        if (value === null) this.#marks.delete(key);
        else this.#marks.set(key, value);
      }
    },
  };
  readonly listing: SessionListing = new ScannedListing(async (deleted, part) => {
    const heads = part === "damaged" ? [] : this.#heads(deleted, part === "with open runs" ? this.#open : null);
    const sessions = heads.map((head) => ({
      head,
      isHeld: () => this.leases.tokenOf(head.header.id) !== null,
    }));
    return { sessions, damaged: [] };
  });
  readonly checkpoints: CheckpointTable = {
    save: async (checkpoint) => {
      this.#existing(checkpoint.sessionId);
      const stored = this.#checkpoints.get(checkpoint.id);
      if (stored !== undefined) checkCheckpointId(stored, checkpoint);
      this.#checkpoints.set(checkpoint.id, checkpoint);
    },
    load: async (id) => this.#checkpoint(id),
    list: async (sessionId, deleted) =>
      this.#find(sessionId, deleted) === undefined ? [] : oldestFirst(this.#checkpointsOf(sessionId)),
    delete: async (id) => this.#checkpoint(id) !== null && this.#checkpoints.delete(id),
  };
  readonly leases: ProcessLeases;
  readonly ledger: LedgerTable = createMemoryLedger();
  readonly blobs: MemoryBlobs;
  readonly #clock: () => Date;
  /** Includes deleted sessions. */
  readonly #sessions = new Map<string, MemorySession>();
  /** The ids of sessions with open runs. */
  readonly #open = new Set<string>();
  readonly #marks = new Map<string, string>();
  readonly #checkpoints = new Map<string, Checkpoint>();

  constructor(clock: () => Date) {
    this.#clock = clock;
    this.leases = new ProcessLeases(clock);
    this.blobs = new MemoryBlobs(clock);
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    this.#checkFree(header.id);
    checkSessionLimits(() => this.#heads(false), sessionLimitsOf(header, options));
    const now = this.#now();
    const empty = { ...emptyHead(header), updatedAt: now };
    const plan = planFirst(empty, drafts, now);
    // Drafts that the caller handed over by `giveDraft` were not copied, so freeze their values.
    for (const { entry } of plan.added) for (const value of Object.values(entry)) freezeDeep(value);
    return this.#add(plan.head, new MemoryLog().add(plan.added));
  }

  async append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const session = this.#existing(sessionId);
    const { head, log } = session;
    const leaseToken = this.leases.tokenOf(sessionId);
    const { plan } = planNow({ head, drafts, options, leaseToken, now: this.#now() }, (wanted) =>
      lookUpWanted(log, wanted),
    );
    log.add(plan.added);
    this.#setHead(session, plan.head);
    return { version: plan.head.version, entries: plan.entries, head: plan.head };
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return this.#find(sessionId)?.head ?? null;
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = this.#find(sessionId, range.deleted);
    let read = 0;
    for (const entry of session?.log.read(range) ?? []) {
      // Nothing in this loop waits, and callers do work for each entry: yield now and then, so that other tasks can run.
      read += entryCharacters(entry);
      if (read > SLICE_CHARACTERS) {
        await nextSlice(read);
        read = 0;
      }
      yield entry;
    }
  }

  async find(sessionId: string, entryId: string): Promise<StoredEntry | null> {
    const { entry, path = null } = this.#find(sessionId)?.log.find(entryId) ?? {};
    return entry === undefined ? null : { entry, path: freezeDeep(path) };
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const { log } = this.#existing(sessionId);
    return readSettings(last, async (seq) => log.settingsAt(seq));
  }

  async fork(sourceId: string, header: SessionHeader, { at, ...limits }: ForkOptions): Promise<SessionHead> {
    const { log, head } = this.#existing(sourceId);
    const version = at === undefined ? head.version : at === null ? 0 : positionOf(log, sourceId, at) + 1;
    this.#checkFree(header.id);
    const last = log.at(version - 1);
    const forked = forkedHeader(header, head.header, { entryId: last?.entry.id ?? null, version });
    checkSessionLimits(() => this.#heads(false), sessionLimitsOf(forked, limits));
    const inherited = last?.head ?? emptyHead(forked);
    const next: SessionHead = {
      ...inherited,
      header: forked,
      openRuns: [],
      updatedAt: this.#now(),
      modifiedAt: inherited.messageCount === 0 ? forked.createdAt : inherited.modifiedAt,
    };
    return this.#add(next, log.fork(version));
  }

  async delete(sessionId: string): Promise<boolean> {
    const session = this.#find(sessionId);
    if (session === undefined) return false;
    session.deletedAt = this.#now();
    this.leases.drop(sessionId);
    return true;
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    const session = this.#find(sessionId, true);
    if (session === undefined) return false;
    if (isOpen(session.head))
      checkSessionLimits(() => this.#heads(false), sessionLimitsOf(session.head.header, options));
    session.deletedAt = null;
    return true;
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    const purged = [...this.#sessions.values()].filter(
      ({ deletedAt, head: { header } }) =>
        deletedAt !== null &&
        deletedAt < before &&
        (sessionId === undefined || header.id === sessionId) &&
        (userId === undefined || header.userId === userId),
    );
    for (const { head, log } of purged) {
      log.clear();
      this.#sessions.delete(head.header.id);
      this.#open.delete(head.header.id);
      for (const { id } of this.#checkpointsOf(head.header.id)) this.#checkpoints.delete(id);
    }
    return purged.length;
  }

  async #replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const session = this.#existing(sessionId);
    if (session.head.version !== version) return false;
    const { plan } = planRewrite(session.head, entries);
    this.#setHead(session, plan.head);
    session.log = new MemoryLog().add(plan.added);
    return true;
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #add(head: SessionHead, log: MemoryLog): SessionHead {
    const session: MemorySession = { head, log, deletedAt: null };
    this.#sessions.set(head.header.id, session);
    this.#setHead(session, head);
    return head;
  }

  #setHead(session: MemorySession, head: SessionHead): void {
    session.head = freezeDeep(head);
    if (head.openRuns.length > 0) this.#open.add(head.header.id);
    else this.#open.delete(head.header.id);
  }

  /** @throws {SessionError} `SESSION_EXISTS` when a live or deleted session has this id. */
  #checkFree(id: string): void {
    if (this.#sessions.has(id)) throw sessionExists(id);
  }

  /** The heads of live or deleted sessions; with `ids`, only of these. */
  #heads(deleted: boolean, ids: ReadonlySet<string> | null = null): SessionHead[] {
    const sessions = ids === null ? this.#sessions.values() : [...ids].map((id) => this.#sessions.get(id));
    return [...sessions].flatMap((session) =>
      session !== undefined && (session.deletedAt !== null) === deleted ? session.head : [],
    );
  }

  #checkpoint(id: string): Checkpoint | null {
    const checkpoint = this.#checkpoints.get(id);
    return checkpoint === undefined || this.#find(checkpoint.sessionId) === undefined ? null : checkpoint;
  }

  /** In the order in which they were saved. */
  #checkpointsOf(id: string): Checkpoint[] {
    return [...this.#checkpoints.values()].filter(({ sessionId }) => sessionId === id);
  }

  #find(sessionId: string, deleted = false): MemorySession | undefined {
    const session = this.#sessions.get(sessionId);
    return session !== undefined && (session.deletedAt !== null) === deleted ? session : undefined;
  }

  #existing(sessionId: string): MemorySession {
    const session = this.#find(sessionId);
    if (session === undefined) throw new SessionNotFoundError(sessionId);
    return session;
  }

  #now(): string {
    return this.#clock().toISOString();
  }
}

function positionOf(log: MemoryLog, sessionId: string, entryId: string): number {
  const stored = log.find(entryId);
  if (stored === undefined) throw new UnknownEntryError(sessionId, entryId);
  return stored.entry.seq;
}

function createMemoryLedger(): LedgerTable {
  const pages = new Map<string, LedgerPage>();
  const hours = new Map<string, LedgerHour[]>();
  return {
    read: async (userId) => pages.get(userId) ?? null,
    async replace(userId, expected, page, ended) {
      if ((pages.get(userId)?.stamp ?? null) !== expected) return false;
      pages.set(userId, page);
      const own = hours.get(userId) ?? [];
      if (ended !== null && !own.some(({ hour }) => hour === ended.hour)) own.push(ended);
      hours.set(userId, own);
      return true;
    },
    hourBefore: async (userId, before) =>
      (hours.get(userId) ?? []).reduce<LedgerHour | null>(
        (last, each) => (each.hour < before && each.hour > (last?.hour ?? -1) ? each : last),
        null,
      ),
    async erase(userId) {
      pages.delete(userId);
      hours.delete(userId);
    },
  };
}
