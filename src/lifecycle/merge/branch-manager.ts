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

/** Options of a `BranchManager`. */
export interface BranchManagerOptions {
  /** The most forks of a session that are not deleted (default 10). */
  readonly maxPerSession?: number;
  readonly clock?: () => Date;
  /** Generates the ids of new branches. */
  readonly ids?: () => string;
}

const OPTIONS: KeysOf<BranchManagerOptions> = { maxPerSession: true, clock: true, ids: true };

/** Options of a branch: its start and its user. */
export interface BranchForkOptions extends StateOptions {
  /** Forks at a checkpoint of the session, instead of its current position. */
  readonly fromCheckpoint?: string;
  /** The last entry that the branch inherits (null: none); default: the session's last. */
  readonly at?: string | null;
  /** The user of the branch (default: the session's). */
  readonly userId?: string | null;
  /** Refuses the branch if its user already has this many active or suspended sessions. */
  readonly maxOpenPerUser?: number;
  /** Refuses the branch if its variables are larger as JSON. */
  readonly variablesBytesMax?: number;
  /** The user who forks (default: the program itself). */
  readonly by?: string;
}

/** Options of a merge. */
export interface MergeOptions extends StateOptions {
  /** Decides what is merged (default: an `AppendMerge`). */
  readonly strategy?: MergeStrategy;
  /** True only previews the merge. */
  readonly dryRun?: boolean;
  /** Refuses the merge if the parent would then have more turns. */
  readonly maxTurns?: number;
  /** Refuses the merge if the parent's variables would then be larger as JSON. */
  readonly variablesBytesMax?: number;
  /** The user who merges (default: the program itself). */
  readonly by?: string;
}

const STATE_KEYS: KeysOf<StateOptions> = { turns: true, checkpoint: true, charactersMax: true };
const FORK_KEYS: KeysOf<BranchForkOptions> = {
  ...STATE_KEYS,
  fromCheckpoint: true,
  at: true,
  userId: true,
  maxOpenPerUser: true,
  variablesBytesMax: true,
  by: true,
};
const MERGE_KEYS: KeysOf<MergeOptions> = {
  ...STATE_KEYS,
  strategy: true,
  dryRun: true,
  maxTurns: true,
  variablesBytesMax: true,
  by: true,
};

/**
 * Forks sessions into branches, and merges them back.
 *
 * - A branch is a separate session that begins with the entries of another one, and does not affect it.
 * - The new entries of a branch are those after its fork position, regardless of the parent's progress and of clocks.
 * - A merge is one atomic append. It is idempotent: entries that are already merged are skipped.
 * - Merged turns keep their ids and times; `metadata.mergedFrom` names the session that they come from.
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
   * Creates an active session that begins with this one's entries, up to its end or an earlier position. Every session can be
   * forked, closed and expired ones too.
   *
   * @throws {SessionError} `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND` (also for a checkpoint of another session),
   * `UNKNOWN_ENTRY`, `CAPACITY`, or `INVALID_OPTION` for an empty name.
   */
  async fork(sessionId: string, branchName: string, options: BranchForkOptions = {}): Promise<SessionState> {
    checkBranchName(branchName);
    checkOptionsOf(options, FORK_KEYS, "fork");
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
      // An incomplete branch is deleted, so that it does not count against the limits.
      await this.#store.delete(header.id).catch(() => {});
      throw error;
    }
  }

  /**
   * Merges the new entries of a branch into a session from which it was forked, directly or through other forks.
   *
   * @throws {SessionError} `SESSION_NOT_FOUND` (also for another user's branch), `LINEAGE` if the branch was not forked from the
   * session, `INVALID_OPTION` for an invalid strategy or a session with itself, `SESSION_CLOSED`, `SESSION_EXPIRED` or
   * `SESSION_SUSPENDED` for a parent that accepts no turns, `CAPACITY`, `INVALID_VALUE`.
   */
  async merge(parentId: string, branchId: string, options: MergeOptions = {}): Promise<MergeResult> {
    checkOptionsOf(options, MERGE_KEYS, "merge");
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
      this.#appendMissing(parentId, candidates, options),
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

  /** A fork of an ended session counts only once it is active, so other sessions may have been created meanwhile. */
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
      // The store fills in entry and version.
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

  /** Appends the entries that are missing in the parent, or only previews that; `head` is the parent's before it. */
  async #appendMissing(
    parentId: string,
    candidates: readonly Candidate[],
    options: MergeOptions,
  ): Promise<MergedAppend> {
    for (let tries = 1; ; tries++) {
      const head = await existing(this.#store, parentId);
      if (head.status !== "active") throw statusError(parentId, head.status);
      const plan = await planMerge(this.#store, parentId, candidates);
      try {
        const state = await (options.dryRun === true ? this.#preview : this.#write).call(this, head, plan, options);
        return { head, plan, state };
      } catch (error) {
        // Another process merged the same branch concurrently; the next attempt finds its entries.
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

interface MergedAppend {
  readonly head: SessionHead;
  readonly plan: MergePlan;
  readonly state: SessionState;
}

async function existing(store: SessionStore, sessionId: string): Promise<SessionHead> {
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  return head;
}

/** The position in the source's log at which a fork ends, and its leaf; undefined if that follows from the log. */
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
    // More entries than in a normal append are allowed for a copy of another log; the drafts have no parents, so each becomes the
    // child of the previous one.
    ...(drafts.length > APPEND_ENTRIES_MAX ? { verbatim: true } : {}),
  };
}

function skippedBy(answer: unknown): readonly SkippedTurn[] {
  const { skipped } = answer as MergeOutcome;
  return Array.isArray(skipped) ? skipped : [];
}
