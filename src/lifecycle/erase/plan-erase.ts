import { clashingId } from "../merge/merge-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { rootIdOf } from "../../session/log/header.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { parentsOf } from "../../session/query.ts";
import type { SessionQuery, SessionStore, StoreEraser } from "../../session/store.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import { heldBackend } from "../checkpoints/held-snapshot.ts";
import { type ErasedContent, findWords } from "./entries-to-erase.ts";
import type { EraseTarget, NotCovered } from "./erase-report.ts";
import type { Throttle } from "./throttle.ts";
import { createHash } from "node:crypto";

/** The input for planning an erasure. */
export interface PlanInput {
  readonly store: SessionStore;
  readonly target: EraseTarget;
  readonly forks: "keep" | "erase";
  readonly at: string;
  /** The plan of an earlier erasure of the same target, which lists what forks have kept; null if there is none. */
  readonly earlier: ErasePlan | null;
  readonly throttle: Throttle;
  readonly onScanned: (sessions: number) => void;
}

const HEIRS_AT_ONCE = 200;

/** Finds everything that an erasure affects. Changes nothing. */
export async function planErase(input: PlanInput): Promise<ErasePlan> {
  return new ErasePlanning(input).run();
}

class ErasePlanning {
  readonly #input: PlanInput;
  readonly #store: SessionStore;
  readonly #removed = new Map<string, FoundSession>();
  readonly #owners = new Map<string, string>();
  readonly #authored = new Set<string>();
  readonly #authoredIn = new Set<string>();
  /** Checkpoints that the user created in sessions of others, by session. */
  readonly #checkpoints = new Map<string, readonly string[]>();
  /** For a session, the removed sessions from which it inherits entries, if only the store knows that. */
  readonly #inherits = new Map<string, Set<string>>();
  /** Sessions that were erased earlier, and whose words forks have kept. */
  readonly #keptBefore = new Set<string>();
  /** Sessions of others that may contain words of the removed ones. */
  readonly #others = new Map<string, FoundSession>();
  readonly #known = new Map<string, FoundSession | null>();

  constructor(input: PlanInput) {
    this.#input = input;
    this.#store = input.store;
  }

  async run(): Promise<ErasePlan> {
    const { target, forks, at, earlier } = this.#input;
    for await (const found of this.#targets()) this.#removed.set(found.head.header.id, found);
    const related = await this.#findHeirs();
    const removals: PlannedRemoval[] = [];
    for (const found of this.#removed.values()) {
      removals.push(await this.#planRemoval(found, related));
      this.#input.onScanned(removals.length);
      await this.#input.throttle.pause();
    }
    if (target.userId !== undefined) await this.#findAuthored(target.userId);
    for (const { sessionId, forkId, entryIds } of earlier?.kept ?? []) {
      this.#keptBefore.add(sessionId);
      for (const id of entryIds) this.#owners.set(id, sessionId);
      const fork = await this.#find(forkId);
      if (fork !== null) await this.#add(fork);
    }
    return { at, forks, removals, ...(await this.#readOthers()), done: false };
  }

  async *#targets(): AsyncGenerator<FoundSession> {
    const { sessionId, userId } = this.#input.target;
    if (sessionId === undefined) return yield* this.#list({ userId: userId as string });
    const found = await this.#find(sessionId);
    if (found !== null) yield found;
  }

  /**
   * Finds the sessions forked from removed ones, even if a session between them is purged. Returns the removed sessions that have
   * such descendants.
   */
  async #findHeirs(): Promise<ReadonlySet<string>> {
    const { eraser } = this.#store;
    const ids = [...this.#removed.keys()];
    const related = new Set<string>();
    for (let first = 0; eraser.heirs !== undefined && first < ids.length; first += HEIRS_AT_ONCE) {
      for (const [sessionId, heirId] of await eraser.heirs(ids.slice(first, first + HEIRS_AT_ONCE))) {
        related.add(sessionId);
        this.#inherits.set(heirId, (this.#inherits.get(heirId) ?? new Set()).add(sessionId));
        const heir = this.#removed.has(heirId) ? null : await this.#find(heirId);
        if (heir !== null) await this.#add(heir);
      }
      await this.#input.throttle.pause();
    }
    return related;
  }

  /** Counts what is removed with a session, and finds other sessions that may contain its words. */
  async #planRemoval({ head, deleted }: FoundSession, heirs: ReadonlySet<string>): Promise<PlannedRemoval> {
    const { id, forkedFrom } = head.header;
    const ancestors = await this.#ancestorsOf(head);
    const hasHeirIndex = this.#store.eraser.heirs !== undefined;
    // Without an index of descendants, the whole store is scanned for a user, and then every entry is needed.
    const readsAll = !hasHeirIndex && this.#input.target.userId !== undefined;
    let related = ancestors.length > 0 || heirs.has(id) || readsAll;
    for await (const child of hasHeirIndex ? [] : this.#list({ parentId: id })) {
      related = true;
      await this.#add(child);
    }
    for (const parent of ancestors) {
      const found = this.#removed.has(parent) ? null : await this.#find(parent);
      // The parent may contain merged turns of its branch.
      if (found !== null) await this.#add(found);
    }
    const first = forkedFrom?.version ?? 0;
    if (related) {
      for await (const { id: entryId, seq } of readEntries(this.#store, { head, deleted })) {
        if (seq >= first) for (const each of mergedIds(id, entryId)) this.#owners.set(each, id);
      }
    }
    const checkpoints = await this.#store.listCheckpoints(id, { deleted });
    const snapshots = checkpoints.filter((checkpoint) => heldBackend(checkpoint) !== null).length;
    const root = rootIdOf(head.header);
    return { id, root, entries: head.version - first, checkpoints: checkpoints.length, snapshots };
  }

  async #findAuthored(userId: string): Promise<void> {
    const isTheirs = ({ id, by }: Entry): boolean => by === userId || this.#owners.has(id);
    for await (const ids of authoredBy(this.#store, userId, isTheirs)) {
      for (const id of ids) {
        const found = this.#removed.has(id) ? null : await this.#find(id);
        if (found !== null) await this.#recordAuthored(found, userId);
        await this.#input.throttle.pause();
      }
      await this.#input.throttle.pause();
    }
  }

  /**
   * Records the entries that a user authored in a session of another user; sessions into which that one was merged may contain
   * them as well.
   */
  async #recordAuthored(found: FoundSession, userId: string): Promise<void> {
    await this.#add(found);
    const { id: sessionId } = found.head.header;
    const { deleted } = found;
    const made = (await this.#store.listCheckpoints(sessionId, { deleted })).filter(({ by }) => by === userId);
    if (made.length > 0)
      this.#checkpoints.set(
        sessionId,
        made.map(({ id }) => id),
      );
    const entryIds: string[] = [];
    for await (const { id, by } of readEntries(this.#store, found)) if (by === userId) entryIds.push(id);
    if (entryIds.length === 0) return;
    this.#authoredIn.add(sessionId);
    for (const id of entryIds) for (const each of mergedIds(sessionId, id)) this.#authored.add(each);
    for (const parent of await this.#ancestorsOf(found.head)) {
      const other = await this.#find(parent);
      if (other !== null) await this.#add(other);
    }
  }

  /** Adds a session of another user and all of its descendants, which may contain the same words. */
  async #add(found: FoundSession): Promise<void> {
    const queue = [found];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { id } = next.head.header;
      if (this.#removed.has(id) || this.#others.has(id)) continue;
      this.#others.set(id, next);
      for await (const child of this.#list({ parentId: id })) queue.push(child);
    }
  }

  async #readOthers(): Promise<Pick<ErasePlan, "cleanings" | "kept" | "notCovered">> {
    const cleanings: PlannedCleaning[] = [];
    const kept: PlannedKeeping[] = [];
    const notCovered: NotCovered[] = [];
    const words: ErasedContent = {
      sessions: this.#removed,
      owners: this.#owners,
      authored: this.#authored,
      authoredIn: this.#authoredIn,
      forks: this.#input.forks,
    };
    for (const found of this.#others.values()) {
      const { id } = found.head.header;
      const made = [...(await this.#ancestorsOf(found.head)), ...(this.#inherits.get(id) ?? []), ...this.#keptBefore];
      const ancestors = new Set(made);
      const inherited = found.head.header.forkedFrom?.version ?? 0;
      const {
        erase,
        kept: keeps,
        answers,
      } = findWords(await readFound(this.#store, found), { ancestors, inherited }, words);
      const checkpointIds = this.#checkpoints.get(id) ?? [];
      if (erase.size + checkpointIds.length > 0)
        cleanings.push({
          id,
          root: rootIdOf(found.head.header),
          deleted: found.deleted,
          entryIds: [...erase],
          checkpointIds,
        });
      for (const [sessionId, entryIds] of keeps) kept.push({ sessionId, forkId: id, entryIds });
      if (answers > 0) notCovered.push({ sessionId: id, reason: "words-of-others", count: answers });
      await this.#input.throttle.pause();
    }
    return { cleanings, kept, notCovered };
  }

  /** All ancestors of a session. */
  async #ancestorsOf(head: SessionHead): Promise<readonly string[]> {
    const found = new Set(parentsOf(head));
    for (const id of found) {
      const parent = this.#removed.get(id) ?? (await this.#find(id));
      if (parent !== null) for (const next of parentsOf(parent.head)) found.add(next);
    }
    return [...found];
  }

  async #find(id: string): Promise<FoundSession | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const head = await this.#store.head(id);
    const found = head === null ? await this.#findDeleted(id) : { head, deleted: false };
    this.#known.set(id, found);
    return found;
  }

  async #findDeleted(id: string): Promise<FoundSession | null> {
    for await (const { items } of listPages(this.#store, { deleted: true })) {
      const head = items.find(({ header }) => header.id === id);
      if (head !== undefined) return { head, deleted: true };
    }
    return null;
  }

  #list(query: Pick<SessionQuery, "userId" | "parentId">): AsyncGenerator<FoundSession> {
    return findSessions(this.#store, query);
  }
}

/** The ids that an entry can have after a merge: its own, or the second one if its own was already in use. */
function mergedIds(sessionId: string, entryId: string): readonly string[] {
  return [entryId, clashingId(sessionId, entryId)];
}

/** A session, deleted or not. */
export interface FoundSession {
  readonly head: SessionHead;
  readonly deleted: boolean;
}

/** The sessions that match a query, followed by the deleted ones that match. */
export async function* findSessions(
  store: SessionStore,
  query: Pick<SessionQuery, "userId" | "parentId">,
): AsyncGenerator<FoundSession> {
  for (const deleted of [false, true])
    for await (const { items } of listPages(store, { ...query, deleted }))
      for (const head of items) yield { head, deleted };
}

/** The log of a session, up to its head. */
async function readFound(store: SessionStore, found: FoundSession): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of readEntries(store, found)) entries.push(entry);
  return entries;
}

function readEntries(store: SessionStore, { head, deleted }: FoundSession): AsyncIterable<Entry> {
  return store.read(head.header.id, { before: head.version, deleted });
}

/** The ids of sessions, deleted ones too, in which a user authored an entry or a checkpoint, in batches. */
export async function* authoredBy(
  store: SessionStore,
  userId: string,
  /** Whether an entry is the user's; used if the store has no index of authors, and every session is scanned. */
  isTheirs: (entry: Entry) => boolean,
): AsyncGenerator<readonly string[]> {
  const { authored } = store.eraser;
  if (authored !== undefined) return yield* authored.call(store.eraser, userId);
  for await (const found of findSessions(store, {})) yield (await has(found)) ? [found.head.header.id] : [];

  async function has(found: FoundSession): Promise<boolean> {
    const checkpoints = await store.listCheckpoints(found.head.header.id, { deleted: found.deleted });
    if (checkpoints.some(({ by }) => by === userId)) return true;
    for await (const entry of readEntries(store, found)) if (isTheirs(entry)) return true;
    return false;
  }
}

/** A session to be removed. */
export interface PlannedRemoval {
  readonly id: string;
  /** The root session of its forks, whose blobs are looked through; absent in plans of earlier versions. */
  readonly root?: string;
  readonly entries: number;
  readonly checkpoints: number;
  readonly snapshots: number;
}

/** A session of another user with entries to be erased. */
export interface PlannedCleaning {
  readonly id: string;
  /** Like that of a removal. */
  readonly root?: string;
  /** Whether it is deleted; it is undeleted for the erasure, and deleted again. */
  readonly deleted: boolean;
  readonly entryIds: readonly string[];
  /** Checkpoints whose metadata is erased; absent in plans of earlier versions. */
  readonly checkpointIds?: readonly string[];
}

/** Entries of a removed session that a fork of another user keeps. */
export interface PlannedKeeping {
  readonly sessionId: string;
  readonly forkId: string;
  readonly entryIds: readonly string[];
}

/** The plan of an erasure. It is stored before anything is erased, and contains only ids, no words and no user names. */
export interface ErasePlan {
  readonly at: string;
  readonly forks: "keep" | "erase";
  readonly removals: readonly PlannedRemoval[];
  readonly cleanings: readonly PlannedCleaning[];
  readonly kept: readonly PlannedKeeping[];
  readonly notCovered: readonly NotCovered[];
  /** How many images and files were removed, once it is done. */
  readonly blobs?: number;
  readonly done: boolean;
}

/** Reads the stored plan of an erasure; null if there is none. */
export async function readPlan(eraser: StoreEraser, target: EraseTarget): Promise<ErasePlan | null> {
  const key = erasureKey(target);
  const text = (await eraser.readMarks([key])).get(key);
  return text === undefined ? null : (JSON.parse(text) as ErasePlan);
}

/** Stores the plan of an erasure. */
export async function writePlan(eraser: StoreEraser, target: EraseTarget, plan: ErasePlan): Promise<void> {
  await eraser.writeMarks(new Map([[erasureKey(target), JSON.stringify(plan)]]));
}

/** The key of a stored plan. A user's name is personal data, so the key has only its hash. */
function erasureKey(target: EraseTarget): string {
  const { userId } = target;
  if (userId === undefined) return `erase/session/${target.sessionId}`;
  return `erase/user/${createHash("sha256").update(userId).digest("hex")}`;
}
