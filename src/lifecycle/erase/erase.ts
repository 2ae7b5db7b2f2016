import { setTimeout as wait } from "node:timers/promises";
import { uuidv7 } from "../../internal/uuid.ts";
import type { SweptBlobs } from "../../session/blob.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionBusyError, SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import { checkName, checkSessionId } from "../../session/id.ts";
import { requestIdOf } from "../../session/log/open-runs.ts";
import { hasBegun } from "../../session/log/run-fold.ts";
import type { Lease, SessionStore } from "../../session/store.ts";
import { writeTombstones } from "../../stores/tombstones.ts";
import type { CheckpointManager } from "../checkpoints/checkpoint-manager.ts";
import {
  type ErasePlan,
  type PlannedCleaning,
  type PlannedRemoval,
  readPlan,
  writePlan,
  planErase,
} from "./plan-erase.ts";
import type { EraseOptions, EraseReport, EraseTarget, NotCovered } from "./erase-report.ts";
import { erasedCheckpoint, erasedEntry } from "../../session/log/erased-entry.ts";
import { Throttle } from "./throttle.ts";

const MARKS_AT_ONCE = 500;
const SESSIONS_AT_ONCE = 10;
const ENTRIES_AT_ONCE = 1000;
const ROOTS_AT_ONCE = 1000;
const ATTEMPTS_MAX = 20;
/**
 * Short, so that the lease of a killed process blocks others only briefly. If it expires before a log is replaced, the
 * replacement fails and is repeated.
 */
const LEASE_MS = 1000;
const LEASE_WAIT_MS = 100;
/** Five minutes; repeating the erasure continues with the session that was busy. */
const LEASE_ATTEMPTS_MAX = 3000;

/** The parts of the manager that an erasure needs. */
export interface EraseParts {
  readonly store: SessionStore;
  readonly checkpoints: CheckpointManager;
  readonly clock: () => Date;
  /** Cancels a run. */
  cancel(sessionId: string, runId: string): Promise<unknown>;
}

/** Erases a session or everything of a user; see `SessionManager.erase`. */
export async function erase(parts: EraseParts, target: EraseTarget, options: EraseOptions): Promise<EraseReport> {
  checkTarget(target);
  checkEraseOptions(options);
  return new Erasure(parts, target, options).run();
}

class Erasure {
  readonly #parts: EraseParts;
  readonly #store: SessionStore;
  readonly #target: EraseTarget;
  readonly #options: EraseOptions;
  readonly #throttle: Throttle;
  readonly #unfreed: NotCovered[] = [];
  #done = 0;

  constructor(parts: EraseParts, target: EraseTarget, options: EraseOptions) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#target = target;
    this.#options = options;
    this.#throttle = new Throttle(options.signal);
  }

  async run(): Promise<EraseReport> {
    const { eraser } = this.#store;
    const earlier = await readPlan(eraser, this.#target);
    if (this.#options.dryRun === true) return this.#reportOf(await this.#plan(earlier));
    let plan = earlier;
    if (earlier === null || earlier.done) {
      plan = await this.#plan(earlier);
      // If a repeated erasure finds nothing new, it reports the result of the first one.
      const isNew = plan.removals.length > 0 || plan.cleanings.length > 0 || earlier === null;
      if (isNew) await writePlan(eraser, this.#target, plan);
      else plan = earlier as ErasePlan;
    }
    const finished = plan?.done === true ? plan : await this.#carryOut(plan as ErasePlan);
    const { userId } = this.#target;
    if (userId !== undefined && this.#store.capabilities.ledger === true) await this.#store.ledger.erase(userId);
    const report = await this.#reportOf(finished);
    if (this.#options.rewrite !== true) return report;
    this.#reportProgress("rewriting", finished);
    try {
      await eraser.rewrite?.();
      return report;
    } catch (error) {
      // The erasure itself is done, and only the report tells what was erased.
      if (!(error instanceof SessionError)) throw error;
      return { ...report, notRewritten: error.message };
    }
  }

  #plan(earlier: ErasePlan | null): Promise<ErasePlan> {
    const { forks = "keep", onProgress } = this.#options;
    const onScanned = (sessionsDone: number): void =>
      onProgress?.({ step: "looking", sessionsDone, sessionsTotal: sessionsDone });
    const at = this.#parts.clock().toISOString();
    const [store, target, throttle] = [this.#store, this.#target, this.#throttle];
    return planErase({ store, target, forks, at, earlier, throttle, onScanned });
  }

  /** Every step is idempotent: what is already erased is skipped. */
  async #carryOut(plan: ErasePlan): Promise<ErasePlan> {
    await this.#mark(plan);
    for (const cleaning of plan.cleanings) {
      await this.#clean(cleaning);
      await this.#afterStep(plan);
    }
    for (const some of batchesOf(plan.removals)) {
      await this.#remove(some);
      for (let count = 0; count < some.length; count++) await this.#afterStep(plan);
    }
    const blobs = await this.#removeBlobs(plan);
    await this.#store.eraser.clearStatistics?.();
    const finished = { ...plan, blobs, notCovered: [...plan.notCovered, ...this.#unfreed], done: true };
    await writePlan(this.#store.eraser, this.#target, finished);
    return finished;
  }

  /** Writes tombstones before anything is erased, so that no concurrent copy brings it back. */
  async #mark({ at, removals, cleanings }: ErasePlan): Promise<void> {
    const { userId } = this.#target;
    const { eraser } = this.#store;
    await writeTombstones(eraser, at, userId === undefined ? {} : { userIds: [userId] });
    const sessionIds = removals.map(({ id }) => id);
    const entryIds = cleanings.flatMap((cleaning) => cleaning.entryIds);
    for (let first = 0; first < Math.max(sessionIds.length, entryIds.length); first += MARKS_AT_ONCE) {
      const part = [first, first + MARKS_AT_ONCE] as const;
      await writeTombstones(eraser, at, { sessionIds: sessionIds.slice(...part), entryIds: entryIds.slice(...part) });
      await this.#throttle.pause();
    }
  }

  /** Removes the images and files that nothing refers to any more, those included that were uploaded and not yet used. */
  async #removeBlobs({ removals, cleanings }: ErasePlan): Promise<number> {
    const roots = [...new Set([...removals, ...cleanings].flatMap(({ root }) => root ?? []))];
    const { signal } = this.#options;
    const sweep = (scope: readonly string[]): Promise<SweptBlobs> =>
      this.#store.sweepBlobs({ graceMs: 0, scope, ...(signal === undefined ? {} : { signal }) });
    let removed = 0;
    // Many at a time, because each sweep waits a second for appends, and lists all sessions.
    for (let first = 0; first < roots.length; first += ROOTS_AT_ONCE) {
      const some = roots.slice(first, first + ROOTS_AT_ONCE);
      const swept = await sweep(some);
      removed += swept.removed;
      for (const root of swept.unreadable === true ? some : []) {
        const { blobs } = await sweep([root]);
        if (blobs > 0) this.#unfreed.push({ sessionId: root, reason: "blobs", count: blobs });
      }
      await this.#throttle.pause();
    }
    return removed;
  }

  /** Erases words in a session of another user. */
  async #clean({ id, deleted, entryIds, checkpointIds = [] }: PlannedCleaning): Promise<void> {
    if (deleted) await this.#store.undelete(id);
    try {
      for (const checkpointId of checkpointIds) {
        const checkpoint = await this.#store.loadCheckpoint(checkpointId);
        if (checkpoint !== null) await this.#store.eraser.replaceCheckpoint(erasedCheckpoint(checkpoint));
      }
      if (entryIds.length === 0) return;
      const wanted = new Set(entryIds);
      await this.#cancelRequests(id, wanted);
      await using _lease = await this.#lease(id);
      for (let attempt = 1; ; attempt++) {
        const entries: Entry[] = [];
        for await (const entry of this.#store.read(id)) entries.push(entry);
        const cleaned = entries.map((entry) => (wanted.has(entry.id) ? erasedEntry(entry) : entry));
        if (await this.#store.eraser.replace(id, entries.length, cleaned)) return;
        if (attempt === ATTEMPTS_MAX) throw new SessionBusyError(id, "other writers that append to it all the time");
      }
    } catch (error) {
      // It was purged meanwhile, and the words with it.
      if (!(error instanceof SessionNotFoundError)) throw error;
    } finally {
      if (deleted) await this.#store.delete(id);
    }
  }

  /** Cancels runs that are requested with erased words and have not started. */
  async #cancelRequests(id: string, entryIds: ReadonlySet<string>): Promise<void> {
    const head = await this.#store.head(id);
    for (const run of head?.openRuns ?? []) {
      if (!hasBegun(run) && entryIds.has(requestIdOf(run.runId))) await this.#parts.cancel(id, run.runId);
    }
  }

  /** Takes the session's lease, because no run may be active while its log is replaced; waits for the end of an active run. */
  async #lease(id: string): Promise<Lease> {
    const { signal } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#store.lease(id, `erase:${uuidv7()}`, LEASE_MS);
      } catch (error) {
        const busy = error instanceof SessionError && error.code === "SESSION_BUSY";
        if (!busy || attempt === LEASE_ATTEMPTS_MAX) throw error;
        await wait(LEASE_WAIT_MS, undefined, signal === undefined ? {} : { signal });
      }
    }
  }

  async #remove(ids: readonly string[]): Promise<void> {
    const { eraser } = this.#store;
    const there: string[] = [];
    for (const [index, found] of (await this.#store.heads(ids)).entries()) {
      const id = ids[index] as string;
      // Undeletes a deleted session for a moment: only then can its checkpoints be listed.
      const head = found ?? ((await this.#store.undelete(id)) ? await this.#store.head(id) : null);
      if (head === null) continue;
      there.push(id);
      // A failure to cancel is ignored: the session is removed anyway.
      for (const { runId } of head.openRuns) await this.#parts.cancel(id, runId).catch(() => {});
      const { length: count } = await this.#parts.checkpoints.deleteAll(id);
      if (count > 0) this.#unfreed.push({ sessionId: id, reason: "snapshot", count });
    }
    if (eraser.remove !== undefined && there.length > 0) return eraser.remove(there);
    for (const id of there) {
      await this.#store.delete(id);
      await this.#store.purge({ sessionId: id });
    }
  }

  async #afterStep(plan: ErasePlan): Promise<void> {
    this.#done += 1;
    this.#reportProgress("erasing", plan);
    await this.#throttle.pause();
  }

  #reportProgress(step: "erasing" | "rewriting", { removals, cleanings }: ErasePlan): void {
    const sessionsTotal = removals.length + cleanings.length;
    this.#options.onProgress?.({ step, sessionsDone: this.#done, sessionsTotal });
  }

  async #reportOf({ removals, cleanings, kept, notCovered, blobs = 0 }: ErasePlan): Promise<EraseReport> {
    const sum = (field: "entries" | "checkpoints" | "snapshots"): number =>
      removals.reduce((total, removal) => total + removal[field], 0);
    const heads = await this.#store.heads(kept.map(({ forkId }) => forkId));
    return {
      sessions: removals.length,
      entries: sum("entries") + cleanings.reduce((total, { entryIds }) => total + entryIds.length, 0),
      checkpoints:
        sum("checkpoints") + cleanings.reduce((total, { checkpointIds = [] }) => total + checkpointIds.length, 0),
      snapshots: sum("snapshots"),
      blobs,
      keptByForks: kept.map(({ sessionId, forkId }, index) => ({
        sessionId,
        forkId,
        userId: heads[index]?.header.userId ?? null,
      })),
      notCovered,
    };
  }
}

/** Groups sessions that are removed in one transaction: each transaction waits for the disk, and a long one blocks others. */
function* batchesOf(removals: readonly PlannedRemoval[]): Generator<readonly string[]> {
  let [ids, entriesLeft]: [string[], number] = [[], ENTRIES_AT_ONCE];
  for (const { id, entries } of removals) {
    if (ids.length === SESSIONS_AT_ONCE || (ids.length > 0 && entries > entriesLeft)) {
      yield ids;
      [ids, entriesLeft] = [[], ENTRIES_AT_ONCE];
    }
    ids.push(id);
    entriesLeft -= entries;
  }
  if (ids.length > 0) yield ids;
}

function checkTarget(target: EraseTarget): void {
  const { sessionId, userId } = (target ?? {}) as { sessionId?: unknown; userId?: unknown };
  if ((sessionId === undefined) === (userId === undefined))
    throw new SessionError("INVALID_OPTION", "An erasure needs either a userId or a sessionId.");
  if (sessionId !== undefined) checkSessionId(sessionId);
  else checkName(userId, "a user");
}

function checkEraseOptions({ forks }: EraseOptions): void {
  if (forks === undefined || forks === "keep" || forks === "erase") return;
  throw new SessionError("INVALID_OPTION", `The option forks is ${show(forks)}; it must be "keep" or "erase".`);
}
