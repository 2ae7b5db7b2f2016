import { setTimeout as wait } from "node:timers/promises";
import { TimestampClock } from "../../internal/timestamp-clock.ts";
import {
  type AppendInput,
  type Found,
  planAppend,
  type PlannedAppend,
  type Wanted,
} from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { type Asking, ask } from "./asking.ts";
import { encodePlan } from "./encode-plan.ts";
import type { RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import type { LogRange } from "./segments.ts";

// A writer on a busy machine may lose many times in a row to others that are quicker.
const ATTEMPTS_MAX = 1000;
const ATTEMPTS_WITHOUT_WAIT = 4;
const WAIT_MS_MAX = 20;

interface Attempt {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

/** What was done, and the session to be remembered once it is sure to stay. */
interface Appended<Session> {
  readonly result: AppendResult;
  readonly session: Session;
}

type Outcome<Session> = Appended<Session> | "behind" | "unsure";

/**
 * Appends to sessions.
 *
 * A remembered head needs no reading: its plan is written if the session is still there. Whatever does not work out that
 * way is planned again on the current head, with the session locked where the store can lock.
 */
export class RowAppender<Part extends LogRange, Session extends RowSession<Part>> {
  readonly #reader: RowReader<Part, Session>;
  readonly #clock: TimestampClock;

  constructor(reader: RowReader<Part, Session>, clock: () => Date) {
    this.#reader = reader;
    this.#clock = new TimestampClock(clock);
  }

  /** Appends of one process to one session must take turns, so that each finds the head of the one before. */
  *append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Asking<AppendResult> {
    const { cache } = this.#reader;
    const attempt = { drafts, options, now: this.#clock.now() };
    const known = cache.get(sessionId);
    try {
      let outcome: Outcome<Session> = known === undefined ? "behind" : yield* this.#appendQuickly(known, attempt);
      for (let count = 1; typeof outcome === "string"; count++) {
        if (count > ATTEMPTS_MAX) throw new SessionBusyError(sessionId, "others that append to it all the time");
        // Lets others go first who are in the way for the same reason.
        if (count > ATTEMPTS_WITHOUT_WAIT) yield* ask(wait(Math.random() * Math.min(WAIT_MS_MAX, count)));
        const next: Attempt = outcome === "unsure" ? { ...attempt, drafts: drafts.map(notFresh) } : attempt;
        outcome = yield* ask(this.#reader.port.locked((port) => this.#appendCarefully(port, sessionId, next)));
      }
      cache.remember(outcome.session);
      return outcome.result;
    } catch (error) {
      // Whether a write that failed left something behind is for the store to say.
      cache.forget(sessionId);
      throw error;
    }
  }

  /** On a remembered head. A refusal is not the last word, and neither is that there is nothing to write. */
  *#appendQuickly(session: Session, attempt: Attempt): Asking<Outcome<Session>> {
    const reader = this.#reader;
    const { port } = reader;
    let idsUnseen = false;
    // Drafts are nearly always new. Where `commit` can see to that, they are not looked up.
    function* look({ ids, settings }: Wanted): Asking<Found> {
      if (!port.checksIds || session.segments.length > 1) return yield* reader.look(session, { ids, settings });
      const own = new Set(attempt.drafts.map(({ id }) => id));
      const others = ids.filter((id) => !own.has(id));
      if (others.length < ids.length) idsUnseen = true;
      return yield* reader.look(session, { ids: others, settings });
    }
    // The lease is a condition of `commit`; here it is taken to be the right one.
    const leaseToken = attempt.options.guard?.leaseToken ?? null;
    let planned: PlannedAppend;
    try {
      planned = yield* planOn(session, attempt, leaseToken, look);
    } catch (error) {
      if (error instanceof SessionError && error.code !== "STORE_FAILED") return "behind";
      throw error;
    }
    if (planned.plan.added.length === 0) return "behind";
    return yield* commit(port, session, planned, { leaseToken, idsUnseen });
  }

  *#appendCarefully(port: RowPort<Part, Session>, sessionId: string, attempt: Attempt): Asking<Outcome<Session>> {
    const reader = new RowReader(port, this.#reader.cache);
    const session = yield* reader.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    const token = attempt.options.guard?.leaseToken;
    const live = token === undefined ? null : yield* ask(port.leaseToken(session));
    const planned = yield* planOn(session, attempt, live, (wanted) => reader.look(session, wanted));
    const { plan } = planned;
    if (plan.added.length === 0) return { result: resultOf(planned), session };
    return yield* commit(port, session, planned, { leaseToken: token ?? null, idsUnseen: false });
  }
}

function* planOn(
  { head }: RowSession<LogRange>,
  { drafts, options, now }: Attempt,
  leaseToken: number | null,
  look: (wanted: Wanted) => Asking<Found>,
): Asking<PlannedAppend> {
  const input: AppendInput = { head, drafts, options, leaseToken, now };
  const steps = planAppend(input);
  let step = steps.next();
  while (step.done !== true) step = steps.next(yield* look(step.value));
  return step.value;
}

function* commit<Part extends LogRange, Session extends RowSession<Part>>(
  port: RowPort<Part, Session>,
  session: Session,
  planned: PlannedAppend,
  conditions: Parameters<RowPort<Part, Session>["commit"]>[2],
): Asking<Outcome<Session>> {
  const encoded = encodePlan(session, planned.plan, planned.found);
  const written = yield* ask(port.commit(session, encoded, conditions));
  return typeof written === "string" ? written : { result: resultOf(planned), session: written };
}

/** An earlier try may have been carried out without our hearing of it, so that no id is new any more. */
function notFresh(draft: CheckedDraft): CheckedDraft {
  return { ...draft, fresh: false };
}

function resultOf({ plan: { head, entries } }: PlannedAppend): AppendResult {
  return { version: head.version, entries, head };
}
