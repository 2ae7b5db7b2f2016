import { setTimeout as wait } from "node:timers/promises";
import { type AppendPlan, idsToFind, planAppend, type StoredEntry } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import type { AppendOptions, AppendResult, Guard } from "../../session/store.ts";
import { type EncodedPlan, encodePlan } from "../encode-plan.ts";
import type { KeyNames } from "./key-names.ts";
import type { LeaseScripts } from "./lease-scripts.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";
import { knownArgs, type SessionLog } from "./session-log.ts";
import { APPEND, APPEND_ONE } from "./session-scripts.ts";
import { type StagedRows, stageRows } from "./staged-rows.ts";
import { nextStamp, settingsOf, type Stamp, type StoredSession, writeHead, writeStamp } from "./stored-session.ts";

const ATTEMPTS_MAX = 200;
const ATTEMPTS_WITHOUT_WAIT = 4;
const WAIT_MS_MAX = 20;
const NOTHING_FOUND: ReadonlyMap<string, StoredEntry> = new Map();

/** What an append needs of its store. */
export interface AppenderParts {
  readonly handle: RedisHandle;
  readonly names: KeyNames;
  readonly log: SessionLog;
  readonly index: SessionIndex;
  readonly leases: LeaseScripts;
  readonly clock: () => Date;
  readonly ttlSeconds: number | undefined;
}

interface Planned {
  readonly plan: AppendPlan;
  readonly found: ReadonlyMap<string, StoredEntry>;
}

interface Attempt {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

/**
 * Appends: plans on the head that is remembered, and has a script write the plan if the session is still there. Whoever
 * is behind is told how things stand and plans again. Appends of this process to one session wait for each other, so
 * that only other processes are ever in the way.
 */
export class Appender {
  readonly #parts: AppenderParts;
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(parts: AppenderParts) {
    this.#parts = parts;
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const before = this.#last.get(sessionId);
    const appending =
      before === undefined
        ? this.#append(sessionId, drafts, options)
        : before.then(() => this.#append(sessionId, drafts, options));
    const done = appending.then(
      () => {},
      () => {},
    );
    this.#last.set(sessionId, done);
    void done.then(() => {
      if (this.#last.get(sessionId) === done) this.#last.delete(sessionId);
    });
    return appending;
  }

  async #append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const { log, clock } = this.#parts;
    try {
      return await this.#attempt(sessionId, { drafts, options, now: clock().toISOString() });
    } catch (error) {
      // Whether a write that failed left something behind is for the server to say.
      log.forget(sessionId);
      throw error;
    }
  }

  async #attempt(sessionId: string, attempt: Attempt): Promise<AppendResult> {
    const { log } = this.#parts;
    const known = log.cached(sessionId);
    let session = known?.deletedAt === null ? known : await log.load(sessionId);
    for (let count = 1; count <= ATTEMPTS_MAX; count++) {
      if (session === null) throw new SessionNotFoundError(sessionId);
      const planned = await this.#planQuickly(session, attempt);
      const outcome = planned === null ? "unsure" : await this.#write(session, planned, attempt);
      if (outcome === "unsure") return this.#appendCarefully(sessionId, attempt);
      if ("result" in outcome) return outcome.result;
      session = outcome.session;
      await breathe(count);
    }
    throw tooBusy(sessionId);
  }

  /** Null for a refusal, and when there is nothing to write: both must be checked on the current head. */
  async #planQuickly(session: StoredSession, { drafts, options, now }: Attempt): Promise<Planned | null> {
    const { head, segments } = session;
    const wanted = idsToFind(head, drafts, options);
    // The script refuses ids that the session itself has, so that usually there is nothing to look up.
    const own = new Set(drafts.map(({ id }) => id));
    const lookUp = segments.length > 1 ? wanted : wanted.filter((id) => !own.has(id));
    const found = lookUp.length === 0 ? NOTHING_FOUND : await this.#parts.log.find(session, lookUp);
    try {
      // The script checks the lease; here it is taken to be the right one.
      const leaseToken = options.guard?.leaseToken ?? null;
      const plan = planAppend({ head, drafts, options, found, leaseToken, now });
      return plan.added.length === 0 ? null : { plan, found };
    } catch (error) {
      if (error instanceof SessionError) return null;
      throw error;
    }
  }

  async #appendCarefully(sessionId: string, { drafts, options, now }: Attempt): Promise<AppendResult> {
    const { log, leases } = this.#parts;
    // An earlier try may have been carried out without our hearing of it, so that no id is new any more.
    const attempt = { drafts: drafts.map((draft) => ({ ...draft, fresh: false })), options, now };
    for (let count = 1; count <= ATTEMPTS_MAX; count++) {
      const session = await log.load(sessionId);
      if (session === null) throw new SessionNotFoundError(sessionId);
      const { head } = session;
      const wanted = idsToFind(head, attempt.drafts, options);
      const found = wanted.length === 0 ? NOTHING_FOUND : await log.find(session, wanted);
      const leaseToken = options.guard?.leaseToken === undefined ? null : await leases.tokenOf(sessionId);
      const plan = planAppend({ head, drafts: attempt.drafts, options, found, leaseToken, now });
      if (plan.added.length === 0) return resultOf(plan);
      const outcome = await this.#write(session, { plan, found }, attempt);
      if (outcome !== "unsure" && "result" in outcome) return outcome.result;
      await breathe(count);
    }
    throw tooBusy(sessionId);
  }

  /** The result; or how the session stands now, when that is not as planned on; or that a look-up is needed. */
  async #write(
    session: StoredSession,
    { plan, found }: Planned,
    { options }: Attempt,
  ): Promise<{ readonly result: AppendResult } | { readonly session: StoredSession | null } | "unsure"> {
    const { handle, names, log, index } = this.#parts;
    const { id } = session.head.header;
    const encoded = encodePlan(session, plan, found);
    if (!session.marked) await index.mark(id, session.stamp.gen);
    const staged = await stageRows(handle, names, id, encoded.rows);
    const stamp = nextStamp(session.stamp);
    const { keys, args } = this.#argsOf(session, stamp, encoded, options, staged);
    // Without options there are three keys.
    const script = keys.length === 3 && encoded.rows.length === 1 ? APPEND_ONE : APPEND;
    const reply = await handle.run(script, keys, args);
    const [kind] = reply;
    if (kind !== "ok") await staged.discard();
    if (kind === "lease" || kind === "taken") return "unsure";
    if (kind === "behind") return { session: await log.load(id) };
    if (kind !== "ok") {
      const current = log.accept(id, reply, session);
      return { session: current?.deletedAt === null ? current : null };
    }
    const { head, leafSeq, factsSeq } = encoded.place;
    log.remember({ ...session, stamp, marked: true, head, leafSeq, factsSeq });
    return { result: resultOf(plan) };
  }

  #argsOf(
    session: StoredSession,
    stamp: Stamp,
    { place }: EncodedPlan,
    { guard }: AppendOptions,
    staged: StagedRows,
  ): { readonly keys: readonly string[]; readonly args: readonly string[] } {
    const { names } = this.#parts;
    const { id } = session.head.header;
    const { uid } = stamp;
    const options = this.#optionsOf(session.head, place.head, guard);
    const keys = [names.session(id), names.entries(id, uid), names.positions(id, uid)];
    if (options !== "" || staged.keys.length > 0)
      keys.push(names.lease(id), names.forks(id, uid), names.checkpoints(id, uid), ...staged.keys);
    const next = [writeStamp(stamp), writeHead(place, stamp.gen), String(session.head.version)];
    return { keys, args: [...knownArgs(session), ...next, names.channel(id), options, ...staged.args] };
  }

  /** What few appends need, for the script; empty when there is nothing of it. */
  #optionsOf(before: SessionHead, after: SessionHead, guard: Guard | undefined): string {
    const { leases, ttlSeconds } = this.#parts;
    const options: Record<string, string> = {};
    if (guard?.leaseToken !== undefined) {
      options.token = String(guard.leaseToken);
      options.clock = leases.clockArg();
    }
    if (ttlSeconds !== undefined) options.ttl = String(ttlSeconds);
    if (settingsOf(before) !== settingsOf(after)) {
      options.ss = settingsOf(after);
      options.set = JSON.stringify(after.path.settings);
    }
    return Object.keys(options).length === 0 ? "" : JSON.stringify(options);
  }
}

/** Lets others go first who are in the way for the same reason. */
async function breathe(count: number): Promise<void> {
  if (count > ATTEMPTS_WITHOUT_WAIT) await wait(Math.random() * Math.min(WAIT_MS_MAX, count));
}

function tooBusy(sessionId: string): SessionBusyError {
  return new SessionBusyError(sessionId, "others that append to it all the time");
}

function resultOf({ head, entries }: AppendPlan): AppendResult {
  return { version: head.version, entries, head };
}
