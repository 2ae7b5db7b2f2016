import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { defined } from "../../internal/defined.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { statusError } from "../../session/log/append-guard.ts";
import { type EntryDraft, type EntryOf, isNode } from "../../session/log/entry.ts";
import { checkSettingsBytes } from "../../session/log/settings-meter.ts";
import {
  CheckpointNotFoundError,
  SessionCapacityError,
  SessionError,
  SessionNotFoundError,
  show,
  UnknownEntryError,
} from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader, type SessionHeader } from "../../session/log/header.ts";
import { APPEND_ENTRIES_MAX, ID_CHARACTERS_MAX } from "../../session/limits.ts";
import { type SessionState, stateOf, turnOf } from "../../session/state/state.ts";
import type { AppendOptions, SessionStore } from "../../session/store.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { AppendMerge } from "./append-merge.ts";
import { followForks, readNewEntries } from "./fork-chain.ts";
import { checkpointExtra } from "../checkpoints/checkpoint-manager.ts";
import { candidateOf, candidatesOf, type MergeSubject } from "./merge-candidates.ts";
import { serialize } from "../../internal/session-queue.ts";
import { baseVariables, conflictsOf, freeId, type MergePlan, planMerge, previewAppend } from "./merge-plan.ts";
import type { MergeOutcome, MergeResult, MergeStrategy, SkippedTurn } from "./merge-strategy.ts";
import { readState, readTurns, type StateOptions } from "../read-state.ts";
import type { Candidate } from "./take-over.ts";

const BRANCHES_DEFAULT = 10;
const TRIES_MAX = 10;

/** How branches are kept. */
export interface BranchManagerOptions {
  /** How many live forks a session may have (default 10). */
  readonly maxPerSession?: number;
  readonly clock?: () => Date;
  /** Makes the ids of new branches. */
  readonly ids?: () => string;
}

const OPTIONS: KeysOf<BranchManagerOptions> = { maxPerSession: true, clock: true, ids: true };

/** Where a branch begins, and whose it is. */
export interface BranchForkOptions extends StateOptions {
  /** A checkpoint of the session, instead of where it stands now. */
  readonly fromCheckpoint?: string;
  /** The last entry that the branch takes over (null: none), instead of where the session stands now. */
  readonly at?: string | null;
  /** The user of the branch (default: the session's). */
  readonly userId?: string | null;
  /** Refuse a branch whose user already has this many active or suspended sessions. */
  readonly maxOpenPerUser?: number;
  /** Refuse a branch whose variables take more bytes as JSON. */
  readonly variablesBytesMax?: number;
  /** Who forks; left out, it is the program itself. */
  readonly by?: string;
}

/** How a branch is merged. */
export interface MergeOptions extends StateOptions {
  /** What of the branch is merged (default: an `AppendMerge`). */
  readonly strategy?: MergeStrategy;
  /** True only says what the merge would do. */
  readonly dryRun?: boolean;
  /** Refuse a merge after which the parent would have more turns. */
  readonly maxTurns?: number;
  /** Refuse a merge after which the parent's variables would take more bytes as JSON. */
  readonly variablesBytesMax?: number;
  /** Who merges; left out, it is the program itself. */
  readonly by?: string;
}

/**
 * Forks sessions into branches and merges these back.
 *
 * - A branch is a session of its own that begins with the entries of another, and that one never notices.
 * - What is new in a branch is known from where it was forked, however far the parent has moved and whatever the clocks say.
 * - A merge is one append: all of it lands, or nothing. What is merged twice is there once.
 * - Merged turns keep their ids and times, and say in `metadata.mergedFrom` where they were said.
 */
export class BranchManager {
  readonly #store: SessionStore;
  readonly #max: number;
  readonly #clock: () => Date;
  readonly #ids: () => string;

  constructor(store: SessionStore, options: BranchManagerOptions = {}) {
    checkStoreArgument(store, "BranchManager");
    checkOptionsOf(options, OPTIONS, "BranchManager");
    const { maxPerSession = BRANCHES_DEFAULT, clock = () => new Date(), ids = uuidv7 } = options;
    checkCount(maxPerSession, "maxPerSession");
    this.#store = store;
    this.#max = maxPerSession;
    this.#clock = clock;
    this.#ids = ids;
  }

  /**
   * A new, active session that begins with what this one says, here or at an earlier point. Any session can be forked,
   * closed and expired ones too.
   *
   * @throws {SessionError} `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND` (also for one of another session), `UNKNOWN_ENTRY`,
   * `CAPACITY`, or `INVALID_OPTION` for a name that is empty.
   */
  async fork(sessionId: string, branchName: string, options: BranchForkOptions = {}): Promise<SessionState> {
    checkBranchName(branchName);
    const source = await existing(this.#store, sessionId);
    const start = await startOf(this.#store, sessionId, options);
    const header = this.#headerOf(source.header, branchName, options);
    const { maxOpenPerUser, variablesBytesMax, by } = options;
    const limits = defined({ maxOpenPerUser, at: start.at });
    const fork = await this.#store.fork(sessionId, header, { maxForks: this.#max, ...limits });
    const drafts: EntryDraft[] = [];
    if (start.leafId !== undefined && start.leafId !== fork.leafId) {
      drafts.push({ type: "leaf", targetId: start.leafId });
    }
    if (fork.status !== "active") drafts.push({ type: "status", status: "active" });
    try {
      const { head } = await this.#store.append(header.id, drafts, defined({ by }));
      if (variablesBytesMax !== undefined)
        checkSettingsBytes(await this.#store.settings(head.header.id, head.path), variablesBytesMax);
      if (fork.status !== head.status) await this.#checkRoom(head, maxOpenPerUser);
      return await readState(this.#store, head, options);
    } catch (error) {
      // A branch that is not as it was asked for is none, and must not count as one.
      await this.#store.delete(header.id).catch(() => {});
      throw error;
    }
  }

  /**
   * Brings what a branch has said since it was forked into a session that it comes from, which need not be the nearest.
   *
   * @throws {SessionError} `SESSION_NOT_FOUND` (also for another user's branch), `LINEAGE` for a session that the branch does
   * not come from, `INVALID_OPTION` for a strategy that is none or a session with itself, `SESSION_CLOSED`,
   * `SESSION_EXPIRED` or `SESSION_SUSPENDED` for a parent that takes no turns, `CAPACITY`, `INVALID_VALUE`.
   */
  async merge(parentId: string, branchId: string, options: MergeOptions = {}): Promise<MergeResult> {
    const { strategy = new AppendMerge(), maxTurns } = options;
    checkStrategy(strategy);
    if (maxTurns !== undefined) checkCount(maxTurns, "maxTurns");
    if (parentId === branchId) {
      throw new SessionError(
        "INVALID_OPTION",
        `Session ${show(parentId)} cannot be merged with itself; name a branch of it.`,
      );
    }
    const parent = await existing(this.#store, parentId);
    const branch = await existing(this.#store, branchId);
    if (branch.header.userId !== parent.header.userId) throw new SessionNotFoundError(branchId);
    if (parent.status !== "active") throw statusError(parentId, parent.status);
    const subject = await this.#subjectOf(parent, branch, options);
    const merged = await this.#mergedSoFar(subject);
    const { newEntries } = subject;
    const answer: unknown = await strategy.merge(subject.parent, subject.branch, {
      newTurns: newEntries.filter((entry): entry is EntryOf<"message"> => entry.type === "message").map(turnOf),
      newEntries,
      merged,
      findInParent: (entryId) => this.#store.getEntry(parentId, entryId),
    });
    const candidates = candidatesOf(answer, strategy, subject);
    const base = await baseVariables(this.#store, branchId, newEntries, merged);
    const skipped = skippedBy(answer);
    const { head, plan, state } = await serialize(this.#store, parentId, () =>
      this.#land(parentId, candidates, options),
    );
    const { variables } = await this.#store.settings(parentId, head.path);
    const sides = { parent: variables, branch: subject.branch.variables, base };
    return Object.freeze({
      state,
      appended: Object.freeze(plan.drafts),
      skipped: Object.freeze([...skipped, ...plan.skipped]),
      conflicts: Object.freeze(conflictsOf(plan.drafts, sides)),
    });
  }

  /** A fork of a session that had ended counts only once it is active, and so others may have been made meanwhile. */
  async #checkRoom({ header: { userId } }: SessionHead, maxOpenPerUser: number | undefined): Promise<void> {
    if (maxOpenPerUser === undefined || userId === null) return;
    if ((await this.#store.count({ userId, status: ["active", "suspended"] })) <= maxOpenPerUser) return;
    throw new SessionCapacityError("open sessions of a user", maxOpenPerUser);
  }

  #headerOf(source: SessionHeader, branchName: string, options: BranchForkOptions): SessionHeader {
    const { fromCheckpoint, userId = source.userId } = options;
    return createHeader({
      id: this.#ids(),
      createdAt: this.#clock().toISOString(),
      userId,
      cwd: source.cwd,
      sandbox: source.sandbox,
      metadata: source.metadata,
      lineage: {
        parents: [source.id],
        operator: "fork",
        kind: "op_fork",
        extras: fromCheckpoint === undefined ? [] : [checkpointExtra(fromCheckpoint)],
      },
      // The store fills in the rest.
      forkedFrom: { sessionId: source.id, entryId: null, version: 0, branchName },
    });
  }

  async #subjectOf(
    parent: SessionHead,
    branch: SessionHead,
    { strategy, charactersMax }: MergeOptions,
  ): Promise<MergeSubject> {
    const chain = await followForks(this.#store, branch, parent.header.id);
    const stateOptions = { turns: strategy !== undefined && strategy.turns !== false, ...defined({ charactersMax }) };
    return {
      chain,
      newEntries: await readNewEntries(this.#store, branch, chain.shared, charactersMax),
      parent: await readState(this.#store, parent, stateOptions),
      branch: await readState(this.#store, branch, stateOptions),
    };
  }

  async #mergedSoFar({ newEntries, chain, parent }: MergeSubject): Promise<ReadonlySet<string>> {
    const merged = new Set<string>();
    for (const entry of newEntries) {
      const candidate = candidateOf(entry, chain);
      if (candidate !== null && (await freeId(this.#store, parent.sessionId, candidate)) === null) merged.add(entry.id);
    }
    return merged;
  }

  /** Appends what is not there yet, or only says what that would come to; `head` is the parent's before it. */
  async #land(parentId: string, candidates: readonly Candidate[], options: MergeOptions): Promise<Landing> {
    for (let tries = 1; ; tries++) {
      const head = await existing(this.#store, parentId);
      if (head.status !== "active") throw statusError(parentId, head.status);
      const plan = await planMerge(this.#store, parentId, candidates);
      try {
        const state = await (options.dryRun === true ? this.#preview : this.#write).call(this, head, plan, options);
        return { head, plan, state };
      } catch (error) {
        // Another process merged the same branch meanwhile; what it appended is found the next time.
        const lostRace = error instanceof SessionError && error.code === "ENTRY_EXISTS";
        if (!lostRace || tries === TRIES_MAX) throw error;
      }
    }
  }

  async #write(head: SessionHead, { drafts }: MergePlan, options: MergeOptions): Promise<SessionState> {
    if (drafts.length === 0) return readState(this.#store, head, options);
    const result = await this.#store.append(head.header.id, drafts, appendOptions(drafts, options));
    return readState(this.#store, result.head, options);
  }

  async #preview(head: SessionHead, { drafts }: MergePlan, options: MergeOptions): Promise<SessionState> {
    const { checkpointId } = await readState(this.#store, head, { turns: false });
    const now = this.#clock().toISOString();
    const { plan, settings } = await previewAppend(this.#store, head, drafts, {
      ...appendOptions(drafts, options),
      now,
    });
    if (options.turns === false) return stateOf(plan.head, settings, [], { checkpointId });
    const turns = await readTurns(this.#store, head.header.id, head.leafId);
    const added = plan.entries.filter((entry): entry is EntryOf<"message"> => entry.type === "message").map(turnOf);
    return stateOf(plan.head, settings, [...turns, ...added], { checkpointId });
  }
}

interface Landing {
  readonly head: SessionHead;
  readonly plan: MergePlan;
  readonly state: SessionState;
}

async function existing(store: SessionStore, sessionId: string): Promise<SessionHead> {
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  return head;
}

/** Where a fork ends in its source's log, and where its leaf must stand; undefined where that follows from the log. */
async function startOf(
  store: SessionStore,
  sessionId: string,
  { fromCheckpoint, at }: BranchForkOptions,
): Promise<{ readonly at?: string | null; readonly leafId?: string | null }> {
  if (fromCheckpoint !== undefined) {
    if (at !== undefined) {
      throw new SessionError("INVALID_OPTION", "A branch begins at a checkpoint or at an entry; name one of the two.");
    }
    const checkpoint = await store.loadCheckpoint(fromCheckpoint);
    if (checkpoint?.sessionId !== sessionId) throw new CheckpointNotFoundError(fromCheckpoint);
    const { version, leafId } = checkpoint;
    if (version === 0) return { at: null };
    for await (const { id } of store.read(sessionId, { after: version - 2, limit: 1 })) return { at: id, leafId };
    throw new CheckpointNotFoundError(fromCheckpoint);
  }
  if (at === undefined || at === null) return at === undefined ? {} : { at };
  const entry = await store.getEntry(sessionId, at);
  if (entry === null) throw new UnknownEntryError(sessionId, at);
  return isNode(entry) ? { at, leafId: at } : { at };
}

function checkBranchName(name: unknown): void {
  if (typeof name === "string" && name.trim() !== "" && name.length <= ID_CHARACTERS_MAX) return;
  throw new SessionError(
    "INVALID_OPTION",
    `${show(name)} is not a branch name: use 1 to ${ID_CHARACTERS_MAX} characters that are not all blank.`,
  );
}

function checkStrategy(strategy: unknown): asserts strategy is MergeStrategy {
  if (typeof (strategy as MergeStrategy | null)?.merge === "function") return;
  throw new SessionError(
    "INVALID_OPTION",
    `There is no merge strategy ${show(strategy)}; give a new AppendMerge(), SelectiveMerge(turnIds) or SummaryMerge({ model }), or an object with a merge method.`,
  );
}

function appendOptions(drafts: readonly EntryDraft[], options: MergeOptions): AppendOptions {
  const { maxTurns, variablesBytesMax, by } = options;
  return {
    guard: { status: "active", ...defined({ maxTurns, variablesBytesMax }) },
    ...defined({ by }),
    // A copy of another log may be of any length; the drafts name no parents, so that they chain as always.
    ...(drafts.length > APPEND_ENTRIES_MAX ? { verbatim: true } : {}),
  };
}

function skippedBy(answer: unknown): readonly SkippedTurn[] {
  const { skipped } = answer as MergeOutcome;
  return Array.isArray(skipped) ? skipped : [];
}
