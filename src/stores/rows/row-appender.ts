import { setTimeout as wait } from "node:timers/promises";
import { NOTHING_KNOWN, planAppend, type PlannedAppend, type Wanted } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { type Coroutine, waitFor } from "./coroutine.ts";
import { encodePlan } from "./row-encoding.ts";
import type { RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import type { LogRange } from "./segments.ts";

// On a busy machine, a writer may lose to faster writers many times in a row.
const ATTEMPTS_MAX = 1000;
const ATTEMPTS_WITHOUT_WAIT = 4;
const WAIT_MS_MAX = 20;

/** An append, with the time that its entries get. */
export interface RowAppend {
  readonly sessionId: string;
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

/** The result of an attempt with the session to cache, or the answer of `RowPort.commit` that makes it try again. */
type Outcome<Session> = { readonly result: AppendResult; readonly session: Session } | "behind" | "unsure";

/**
 * Appends to a session with optimistic locking. Run the appends of one process to one session one after the other, so that
 * each plans on the head that the one before has cached.
 *
 * The first attempt plans on the cached head without reading, and commits if the session is still at that version. Every
 * further attempt locks the session, if the store can, and plans on its current head.
 */
export function* appendRows<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  append: RowAppend,
): Coroutine<AppendResult> {
  const { cache, port } = reader;
  const { sessionId, drafts } = append;
  const known = cache.get(sessionId);
  // Once an attempt may have been written, every later attempt looks up its ids first.
  let [failures, unsure] = [0, false];
  for (let count = 0; ; count++) {
    let outcome: Outcome<Session> = "behind";
    try {
      if (count > 0) {
        if (count > ATTEMPTS_MAX) throw new SessionBusyError(sessionId, "others that append to it all the time");
        // Random backoff between competing writers.
        if (count > ATTEMPTS_WITHOUT_WAIT) yield* waitFor(wait(Math.random() * Math.min(WAIT_MS_MAX, count)));
        const next: RowAppend = unsure ? { ...append, drafts: drafts.map(asMaybeStored) } : append;
        outcome = yield* waitFor(port.locked((locked) => write(new RowReader(locked, cache), null, next)));
      } else if (known !== undefined) outcome = yield* write(reader, known, append);
    } catch (error) {
      cache.forget(sessionId);
      const waitMs = port.retryDelayMs?.(error, failures++) ?? null;
      if (waitMs === null) throw error;
      yield* waitFor(wait(waitMs));
      outcome = "unsure";
    }
    if (typeof outcome !== "string") {
      cache.remember(outcome.session);
      return outcome.result;
    }
    unsure ||= outcome === "unsure";
  }
}

/**
 * One attempt: plans on a session and commits the plan. If it plans on a cached session, it answers `behind` instead of a
 * refusal or an empty plan, as the current head may allow the append or need entries.
 */
function* write<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  cached: Session | null,
  { sessionId, drafts, options, now }: RowAppend,
): Coroutine<Outcome<Session>> {
  const { port } = reader;
  const session = cached ?? (yield* reader.load(sessionId));
  if (session === null) throw new SessionNotFoundError(sessionId);
  const requiredToken = options.guard?.leaseToken ?? null;
  // `commit` checks the lease anyway, so with a cached session the plan assumes that the required lease is live.
  const leaseToken =
    cached !== null || requiredToken === null ? requiredToken : yield* waitFor(port.leaseToken(session));
  const input = { head: session.head, drafts, options, leaseToken, now };
  // The ids of drafts are nearly always new. If `commit` can check that, they are not looked up.
  const skipsOwn = cached !== null && port.checksIds && session.segments.length === 1;
  let idsUnchecked = false;
  let planned: PlannedAppend | Wanted;
  try {
    planned = planAppend(input);
    for (let known = NOTHING_KNOWN; !("plan" in planned); planned = planAppend(input, known)) {
      const { ids, settings } = planned;
      const others = skipsOwn ? withoutOwn(ids, drafts) : ids;
      if (others.length < ids.length) idsUnchecked = true;
      known = known.with(planned, yield* reader.lookUp(session, { ids: others, settings }));
    }
  } catch (error) {
    if (cached !== null && error instanceof SessionError && error.code !== "STORE_FAILED") return "behind";
    throw error;
  }
  const { plan, found } = planned;
  const result = { version: plan.head.version, entries: plan.entries, head: plan.head };
  if (plan.added.length === 0) return cached !== null ? "behind" : { result, session };
  const encoded = encodePlan(session, plan, found);
  const written = yield* waitFor(port.commit(session, encoded, { leaseToken: requiredToken, idsUnchecked }));
  return typeof written === "string" ? written : { result, session: written };
}

function withoutOwn(ids: readonly string[], drafts: readonly CheckedDraft[]): readonly string[] {
  const own = new Set(drafts.map(({ id }) => id));
  return ids.filter((id) => !own.has(id));
}

/** An earlier attempt may have been written although its answer was lost, so the id of the draft must be looked up. */
function asMaybeStored(draft: CheckedDraft): CheckedDraft {
  return { ...draft, fresh: false };
}
