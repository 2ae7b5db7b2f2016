import { setTimeout as wait } from "node:timers/promises";
import { NOTHING_KNOWN, planAppend, type PlannedAppend, type Wanted } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { type Asking, ask } from "./asking.ts";
import { encodePlan } from "./encode-plan.ts";
import type { RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import type { LogRange } from "./segments.ts";

// A writer on a busy machine may lose many times in a row to others that are quicker.
const ATTEMPTS_MAX = 1000;
const ATTEMPTS_WITHOUT_WAIT = 4;
const WAIT_MS_MAX = 20;

/** An append, and what time it is. */
export interface RowAppend {
  readonly sessionId: string;
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

/** What was done, and the session to be remembered once it is sure to stay. */
type Outcome<Session> = { readonly result: AppendResult; readonly session: Session } | "behind" | "unsure";

/**
 * Appends to a session. Appends of one process to one session must take turns, so that each finds the head of the one before.
 *
 * A remembered head needs no reading: its plan is written if the session is still there. Whatever does not work out that
 * way is planned again on the current head, with the session locked where the store can lock.
 */
export function* appendRows<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  append: RowAppend,
): Asking<AppendResult> {
  const { cache, port } = reader;
  const { sessionId, drafts } = append;
  const known = cache.get(sessionId);
  // Once an append may have been written, every later try looks for it.
  let [lost, unsure] = [0, false];
  for (let count = 0; ; count++) {
    let outcome: Outcome<Session> = "behind";
    try {
      if (count > 0) {
        if (count > ATTEMPTS_MAX) throw new SessionBusyError(sessionId, "others that append to it all the time");
        // Lets others go first who are in the way for the same reason.
        if (count > ATTEMPTS_WITHOUT_WAIT) yield* ask(wait(Math.random() * Math.min(WAIT_MS_MAX, count)));
        const next: RowAppend = unsure ? { ...append, drafts: drafts.map(notFresh) } : append;
        outcome = yield* ask(port.locked((locked) => write(new RowReader(locked, cache), null, next)));
      } else if (known !== undefined) outcome = yield* write(reader, known, append);
    } catch (error) {
      cache.forget(sessionId);
      const waitMs = port.waitAfter?.(error, lost++) ?? null;
      if (waitMs === null) throw error;
      yield* ask(wait(waitMs));
      outcome = "unsure";
    }
    if (typeof outcome !== "string") {
      cache.remember(outcome.session);
      return outcome.result;
    }
    unsure ||= outcome === "unsure";
  }
}

/** Plans on a session and writes that. On a remembered one, neither a refusal is the last word nor nothing to write. */
function* write<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  remembered: Session | null,
  { sessionId, drafts, options, now }: RowAppend,
): Asking<Outcome<Session>> {
  const { port } = reader;
  const session = remembered ?? (yield* reader.load(sessionId));
  if (session === null) throw new SessionNotFoundError(sessionId);
  const asked = options.guard?.leaseToken ?? null;
  // The lease is a condition of `commit`; on a remembered session it is taken to be the right one.
  const leaseToken = remembered !== null || asked === null ? asked : yield* ask(port.leaseToken(session));
  const input = { head: session.head, drafts, options, leaseToken, now };
  // Drafts are nearly always new. Where `commit` can see to that, they are not looked up.
  const skipsOwn = remembered !== null && port.checksIds && session.segments.length === 1;
  let idsUnseen = false;
  let planned: PlannedAppend | Wanted;
  try {
    planned = planAppend(input);
    for (let known = NOTHING_KNOWN; !("plan" in planned); planned = planAppend(input, known)) {
      const { ids, settings } = planned;
      const others = skipsOwn ? withoutOwn(ids, drafts) : ids;
      if (others.length < ids.length) idsUnseen = true;
      known = known.with(planned, yield* reader.look(session, { ids: others, settings }));
    }
  } catch (error) {
    if (remembered !== null && error instanceof SessionError && error.code !== "STORE_FAILED") return "behind";
    throw error;
  }
  const { plan, found } = planned;
  const result = { version: plan.head.version, entries: plan.entries, head: plan.head };
  if (plan.added.length === 0) return remembered !== null ? "behind" : { result, session };
  const encoded = encodePlan(session, plan, found);
  const written = yield* ask(port.commit(session, encoded, { leaseToken: asked, idsUnseen }));
  return typeof written === "string" ? written : { result, session: written };
}

function withoutOwn(ids: readonly string[], drafts: readonly CheckedDraft[]): readonly string[] {
  const own = new Set(drafts.map(({ id }) => id));
  return ids.filter((id) => !own.has(id));
}

/** An earlier try may have been carried out without our hearing of it, so that no id is new any more. */
function notFresh(draft: CheckedDraft): CheckedDraft {
  return { ...draft, fresh: false };
}
