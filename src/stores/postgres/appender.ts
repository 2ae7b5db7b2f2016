import { TimestampClock } from "../../internal/timestamp-clock.ts";
import {
  type AppendInput,
  type AppendPlan,
  NOTHING_FOUND,
  planAppend,
  planLater,
  type PlannedAppend,
  type Wanted,
} from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { type EncodedPlan, encodePlan } from "../rows/encode-plan.ts";
import type { EntryWriter, WriteConditions } from "./entry-writer.ts";
import type { LeaseColumns } from "./lease-columns.ts";
import { isRetryable } from "./postgres-failure.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import type { SessionLog } from "./session-log.ts";
import type { LoadedSession } from "./session-row.ts";

interface Attempt {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

interface Planned {
  readonly plan: AppendPlan;
  readonly encoded: EncodedPlan;
  /** Nobody has looked whether the drafts are stored already. */
  readonly idsAreNew: boolean;
}

/**
 * Appends to sessions.
 *
 * A remembered head needs no reading: one statement writes the entries and the head, if the session is still at that
 * version. Whatever does not work out that way is done again on the current head, with the session's row locked, where
 * nothing can come in between. Appends of one process to one session take turns, so that each finds the head of the
 * one before.
 */
export class Appender {
  readonly #handle: PostgresHandle;
  readonly #log: SessionLog;
  readonly #writer: EntryWriter;
  readonly #leases: LeaseColumns;
  readonly #clock: TimestampClock;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(
    handle: PostgresHandle,
    parts: { log: SessionLog; writer: EntryWriter; leases: LeaseColumns; clock: () => Date },
  ) {
    this.#handle = handle;
    this.#log = parts.log;
    this.#writer = parts.writer;
    this.#leases = parts.leases;
    this.#clock = new TimestampClock(parts.clock);
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const work = (): Promise<AppendResult> => this.#append(sessionId, drafts, options);
    const before = this.#turns.get(sessionId);
    const appending = before === undefined ? work() : before.then(work);
    const end = (): void => {
      if (this.#turns.get(sessionId) === turn) this.#turns.delete(sessionId);
    };
    const turn = appending.then(end, end);
    this.#turns.set(sessionId, turn);
    return appending;
  }

  async #append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const attempt = { drafts, options, now: this.#clock.now() };
    const known = this.#log.cached(sessionId);
    try {
      const planning = known === undefined ? null : this.#planOn(known, attempt);
      const planned = planning instanceof Promise ? await planning : planning;
      if (known !== undefined && planned !== null && this.#fits(known, planned)) {
        const leaseToken = options.guard?.leaseToken ?? null;
        const conditions = { leaseToken, nowMs: this.#leases.nowMs(), idsAreNew: planned.idsAreNew };
        if (await this.#writes(known, planned, conditions)) {
          this.#log.remember(movedTo(known, planned.encoded));
          return resultOf(planned.plan);
        }
      }
      const { result, session } = await this.#handle.transaction((transaction) =>
        this.#appendLocked(sessionId, attempt, transaction),
      );
      this.#log.remember(session);
      return result;
    } catch (error) {
      // Whether a write that failed left something behind is for the database to say.
      this.#log.forget(sessionId);
      throw error;
    }
  }

  /** Whether one statement is all that a plan takes. */
  #fits({ head }: LoadedSession, { plan, encoded }: Planned): boolean {
    return plan.added.length > 0 && plan.head.status === head.status && this.#writer.fits(encoded);
  }

  /** False when the remembered head is behind, or a condition must be checked on the current one. */
  #writes(session: LoadedSession, { encoded }: Planned, conditions: WriteConditions): Promise<boolean> {
    return this.#writer.append(this.#handle, session, encoded, conditions).then(
      ({ written }) => written,
      (error: unknown) => {
        // A database whose transactions are stricter by default refuses instead of looking at the row again.
        if (isRetryable(error)) return false;
        throw error;
      },
    );
  }

  /** At once where nothing has to be looked up, as an append seldom has; null when it does not fit the head. */
  #planOn(session: LoadedSession, attempt: Attempt): Planned | null | Promise<Planned | null> {
    // The statement that writes checks the lease; here it is taken to be the right one.
    const steps = planAppend(inputOf(session, attempt, attempt.options.guard?.leaseToken ?? null));
    const own = new Set(attempt.drafts.map(({ id }) => id));
    let idsAreNew = false;
    try {
      let step = steps.next();
      // Drafts are nearly always new. Whether they are is asked by the statement that writes them, unless entries that the
      // session took over from another must be looked at as well.
      const asksForDraftsOnly =
        step.done !== true && step.value.ids.length > 0 && step.value.ids.every((id) => own.has(id));
      if (asksForDraftsOnly && session.segments.length === 1) {
        idsAreNew = true;
        step = steps.next(NOTHING_FOUND);
      }
      if (step.done === true) return encodeOn(session, step.value, idsAreNew);
      return this.#goOn(session, steps, step.value, idsAreNew).catch(refusalAsNull);
    } catch (error) {
      return refusalAsNull(error);
    }
  }

  async #goOn(
    session: LoadedSession,
    steps: ReturnType<typeof planAppend>,
    first: Wanted,
    idsAreNew: boolean,
  ): Promise<Planned> {
    let step = steps.next(await this.#log.look(session, first, this.#handle));
    while (step.done !== true) step = steps.next(await this.#log.look(session, step.value, this.#handle));
    return encodeOn(session, step.value, idsAreNew);
  }

  /** What was done, and the session to be remembered once it is sure to stay. */
  async #appendLocked(
    sessionId: string,
    attempt: Attempt,
    transaction: Transaction,
  ): Promise<{ readonly result: AppendResult; readonly session: LoadedSession }> {
    const { options } = attempt;
    const row = await this.#log.row(sessionId, transaction, "FOR NO KEY UPDATE");
    if (row === null) throw new SessionNotFoundError(sessionId);
    const session = this.#log.sessionOf(row);
    const guarded = options.guard?.leaseToken !== undefined;
    const leaseToken = guarded ? await this.#leases.tokenOf(session.key, transaction) : null;
    const { plan, found } = await planLater(inputOf(session, attempt, leaseToken), (wanted) =>
      this.#log.look(session, wanted, transaction),
    );
    if (plan.added.length === 0) return { result: resultOf(plan), session };
    const encoded = encodePlan(session, plan, found);
    const { status } = plan.head;
    if (!row.marked || status !== session.head.status) await this.#writer.mark(transaction, session.key, status);
    const conditions = { leaseToken: null, nowMs: null, idsAreNew: false };
    const { written, others } = await this.#writer.append(transaction, session, encoded, conditions);
    if (!written) throw new Error(`Session ${sessionId} changed while it was locked.`);
    await this.#writer.insert(transaction, session.key, others);
    return { result: resultOf(plan), session: movedTo(session, encoded) };
  }
}

function inputOf({ head }: LoadedSession, attempt: Attempt, leaseToken: number | null): AppendInput {
  const { drafts, options, now } = attempt;
  return { head, drafts, options, leaseToken, now };
}

function encodeOn(session: LoadedSession, { plan, found }: PlannedAppend, idsAreNew: boolean): Planned {
  return { plan, encoded: encodePlan(session, plan, found), idsAreNew };
}

/** Drafts may not fit a head that is behind, so that a refusal is not the last word. */
function refusalAsNull(error: unknown): null {
  if (error instanceof SessionError && error.code !== "STORE_FAILED") return null;
  throw error;
}

function resultOf({ head, entries }: AppendPlan): AppendResult {
  return { version: head.version, entries, head };
}

function movedTo({ key, segments }: LoadedSession, { place }: EncodedPlan): LoadedSession {
  const { head, leafSeq, factsSeq } = place;
  return { key, segments, head, leafSeq, factsSeq };
}
