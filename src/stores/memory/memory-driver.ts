import { sameJson } from "../../internal/json.ts";
import { type Found, planFirst, planNow, type StoredEntry, type Wanted } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import type { Entry } from "../../session/entry.ts";
import {
  SessionCapacityError,
  SessionError,
  SessionNotFoundError,
  show,
  UnknownEntryError,
} from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../../session/fold.ts";
import { forkedHeader } from "../../session/forked-header.ts";
import type { SessionHeader } from "../../session/header.ts";
import { idleSince, isOpen, matchesQuery } from "../../session/query.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type {
  DriverForkOptions,
  DriverPurge,
  ListPosition,
  ReadRange,
  StoreDriver,
} from "../../session/store-driver.ts";
import type {
  AppendOptions,
  AppendResult,
  Checkpoint,
  SessionPage,
  SessionQuery,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
} from "../../session/store.ts";
import { planAgain } from "../complete/plan-again.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { MemoryLog } from "./memory-log.ts";
import { type MemorySession, SessionTable } from "./session-table.ts";

/** Keeps sessions in this process and nowhere else. Every operation is done in one go, so none can meet another. */
export class MemoryDriver implements StoreDriver {
  readonly appendsAtOnce = true;
  readonly capabilities: StoreCapabilities = {
    durable: false,
    shared: false,
    forkByReference: true,
    search: "scan",
    watch: "push",
    lease: "process",
    aggregate: "scan",
  };
  readonly eraser: StoreEraser = {
    replace: (sessionId, version, entries) => this.#replace(sessionId, version, entries),
    readMarks: async (keys) =>
      new Map(keys.flatMap((key) => (this.#marks.has(key) ? [[key, this.#marks.get(key) as string]] : []))),
    writeMarks: async (changes) => {
      for (const [key, value] of changes) {
        if (value === null) this.#marks.delete(key);
        else this.#marks.set(key, value);
      }
    },
  };
  readonly #clock: () => Date;
  readonly #table = new SessionTable();
  readonly #marks = new Map<string, string>();
  readonly #checkpoints = new Map<string, Checkpoint>();

  constructor(clock: () => Date) {
    this.#clock = clock;
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    this.#table.checkFree(header.id);
    this.#checkOpen(header.userId, options.maxOpenPerUser);
    const now = this.#now();
    const empty = { ...emptyHead(header), updatedAt: now };
    const plan = planFirst(empty, drafts, now);
    const log = new MemoryLog();
    log.add(plan.added);
    return this.#table.add(plan.head, log).head;
  }

  async append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const session = this.#existing(sessionId);
    const { head, log } = session;
    const { plan } = planNow({ head, drafts, options, now: this.#now() }, (wanted) => look(log, wanted));
    log.add(plan.added);
    this.#table.setHead(session, plan.head);
    return { version: plan.head.version, entries: plan.entries, head: plan.head };
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return this.#table.live(sessionId)?.head ?? null;
  }

  async *read(sessionId: string, range: ReadRange): AsyncGenerator<Entry> {
    const session = range.deleted ? this.#table.deleted(sessionId) : this.#table.live(sessionId);
    yield* session?.log.read(range) ?? [];
  }

  async getEntry(sessionId: string, entryId: string): Promise<Entry | null> {
    return this.#table.live(sessionId)?.log.find(entryId)?.entry ?? null;
  }

  async path(sessionId: string, entryId: string): Promise<PathSummary | null> {
    return freezeDeep(this.#table.live(sessionId)?.log.find(entryId)?.path ?? null);
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    const { log } = this.#existing(sessionId);
    return readSettings(last, async (seq) => log.settingsAt(seq));
  }

  async fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Promise<SessionHead> {
    const { log, head } = this.#existing(sourceId);
    const { at, maxForks, maxOpenPerUser } = options;
    const version = at === undefined ? head.version : at === null ? 0 : positionOf(log, sourceId, at) + 1;
    this.#table.checkFree(header.id);
    const forks = ({ header: { forkedFrom } }: SessionHead): boolean => forkedFrom?.sessionId === sourceId;
    if (maxForks !== undefined && this.#table.count(forks) >= maxForks)
      throw new SessionCapacityError("forks of a session", maxForks);
    this.#checkOpen(header.userId, maxOpenPerUser);
    const last = log.at(version - 1);
    const forked = forkedHeader(header, head.header, { entryId: last?.entry.id ?? null, version });
    const inherited = last?.head ?? emptyHead(forked);
    const next: SessionHead = {
      ...inherited,
      header: forked,
      openRuns: [],
      updatedAt: this.#now(),
      modifiedAt: inherited.messageCount === 0 ? forked.createdAt : inherited.modifiedAt,
    };
    return this.#table.add(next, log.fork(version)).head;
  }

  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    const items: SessionHead[] = [];
    for (const { head } of this.#table.from(after, query.deleted === true)) {
      if (matchesQuery(head, query) && items.push(head) === limit) break;
    }
    return { items, damaged: [] };
  }

  async count(query: SessionQuery): Promise<number> {
    return this.#table.count((head) => matchesQuery(head, query), query.deleted === true);
  }

  async delete(sessionId: string): Promise<boolean> {
    const session = this.#table.live(sessionId);
    if (session === undefined) return false;
    session.deletedAt = this.#now();
    return true;
  }

  async undelete(sessionId: string, { maxOpenPerUser }: UndeleteOptions): Promise<boolean> {
    const session = this.#table.deleted(sessionId);
    if (session === undefined) return false;
    if (isOpen(session.head)) this.#checkOpen(session.head.header.userId, maxOpenPerUser);
    session.deletedAt = null;
    return true;
  }

  async purge(which: DriverPurge): Promise<number> {
    const purged = this.#table.purge(which);
    for (const { checkpoints } of purged) for (const id of checkpoints) this.#checkpoints.delete(id);
    return purged.length;
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<void> {
    const { checkpoints } = this.#existing(checkpoint.sessionId);
    const stored = this.#checkpoints.get(checkpoint.id);
    if (stored !== undefined && !sameJson(stored, checkpoint)) {
      throw new SessionError(
        "CHECKPOINT_EXISTS",
        `There is already a checkpoint ${show(checkpoint.id)} with other content; use another id.`,
      );
    }
    this.#checkpoints.set(checkpoint.id, checkpoint);
    checkpoints.add(checkpoint.id);
  }

  async loadCheckpoint(id: string): Promise<Checkpoint | null> {
    const checkpoint = this.#checkpoints.get(id);
    return checkpoint === undefined || this.#table.live(checkpoint.sessionId) === undefined ? null : checkpoint;
  }

  async listCheckpoints(sessionId: string): Promise<Checkpoint[]> {
    const ids = this.#table.live(sessionId)?.checkpoints ?? [];
    const checkpoints = [...ids].map((id) => this.#checkpoints.get(id) as Checkpoint);
    return checkpoints.sort((a, b) => compare(a.createdAt, b.createdAt));
  }

  async deleteCheckpoint(id: string): Promise<boolean> {
    const checkpoint = await this.loadCheckpoint(id);
    if (checkpoint === null) return false;
    this.#table.live(checkpoint.sessionId)?.checkpoints.delete(id);
    return this.#checkpoints.delete(id);
  }

  async listExpired(before: string, limit: number): Promise<SessionHead[]> {
    return idleSince(
      [...this.#table.all(false)].map(({ head }) => head),
      before,
    ).slice(0, limit);
  }

  async #replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const session = this.#existing(sessionId);
    if (session.head.version !== version) return false;
    const { plan } = planAgain(session.head, entries);
    const log = new MemoryLog();
    log.add(plan.added);
    this.#table.replace(session, plan.head, log);
    return true;
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #checkOpen(userId: string | null, limit: number | undefined): void {
    if (limit === undefined || userId === null) return;
    if (this.#table.count((head) => head.header.userId === userId && isOpen(head)) < limit) return;
    throw new SessionCapacityError("open sessions of a user", limit);
  }

  #existing(sessionId: string): MemorySession {
    const session = this.#table.live(sessionId);
    if (session === undefined) throw new SessionNotFoundError(sessionId);
    return session;
  }

  #now(): string {
    return this.#clock().toISOString();
  }
}

function look(log: MemoryLog, { ids, settings }: Wanted): Found {
  const entries = new Map<string, StoredEntry>();
  for (const id of ids) {
    const stored = log.find(id);
    if (stored !== undefined) entries.set(id, stored);
  }
  return { entries, settings: new Map(settings.map((seq) => [seq, log.settingsAt(seq)])) };
}

function positionOf(log: MemoryLog, sessionId: string, entryId: string): number {
  const stored = log.find(entryId);
  if (stored === undefined) throw new UnknownEntryError(sessionId, entryId);
  return stored.entry.seq;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
