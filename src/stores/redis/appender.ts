import { TimestampClock } from "../../internal/timestamp-clock.ts";
import { setTimeout as wait } from "node:timers/promises";
import {
  type AppendInput,
  type AppendPlan,
  type Found,
  NOTHING_FOUND,
  planLater,
  type PlannedAppend,
  type Wanted,
} from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import type { AppendOptions, AppendResult, Guard } from "../../session/store.ts";
import { type EncodedPlan, encodePlan, type NewRow } from "../rows/encode-plan.ts";
import { sameFacts } from "../rows/entry-state.ts";
import { LruCache } from "../lru-cache.ts";
import type { KeyNames } from "./key-names.ts";
import type { LeaseScripts } from "./lease-scripts.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { SessionIndex } from "./session-index.ts";
import { CACHED_SESSIONS, knownArgs, placeOf, type SessionLog, writeRow } from "./session-log.ts";
import { APPEND, APPEND_ONE, ONE_KINDS } from "./session-scripts.ts";
import { stageRows } from "./staged-rows.ts";
import {
  nextStamp,
  settingsOf,
  type Stamp,
  type StoredSession,
  writeFacts,
  writeHead,
  writeSettings,
} from "./stored-session.ts";

// A writer on a busy machine may lose many times in a row to others that are quicker.
const ATTEMPTS_MAX = 1000;
const ATTEMPTS_WITHOUT_WAIT = 4;
const WAIT_MS_MAX = 20;

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

type Outcome = AppendResult | { readonly session: StoredSession | null } | "unsure";

interface Attempt {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly now: string;
}

/** What a script is told of where a session is. */
interface SessionNames {
  readonly keys: readonly string[];
  readonly channel: string;
}

/**
 * Appends: plans on the head that is remembered, and has a script write the plan if the session is still there. Whoever
 * is behind is told how things stand and plans again. Appends of this process to one session wait for each other, so
 * that only other processes are ever in the way.
 */
export class Appender {
  readonly #parts: AppenderParts;
  readonly #clock: TimestampClock;
  readonly #last = new Map<string, Promise<unknown>>();
  /** By unique names, as a text that was just put together costs more to send than one that was sent before. */
  readonly #names = new LruCache<string, SessionNames>(CACHED_SESSIONS);

  constructor(parts: AppenderParts) {
    this.#parts = parts;
    this.#clock = new TimestampClock(parts.clock);
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const before = this.#last.get(sessionId);
    const appending =
      before === undefined
        ? this.#append(sessionId, drafts, options)
        : before.then(() => this.#append(sessionId, drafts, options));
    const leave = (): void => {
      if (this.#last.get(sessionId) === done) this.#last.delete(sessionId);
    };
    const done = appending.then(leave, leave);
    this.#last.set(sessionId, done);
    return appending;
  }

  async #append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const { log } = this.#parts;
    const attempt = { drafts, options, now: this.#clock.now() };
    try {
      const known = log.cached(sessionId);
      let session = known?.deletedAt === null ? known : await log.load(sessionId);
      for (let count = 1; count <= ATTEMPTS_MAX; count++) {
        if (session === null) throw new SessionNotFoundError(sessionId);
        const planned = await this.#planQuickly(session, attempt);
        const outcome = planned === null ? "unsure" : await this.#write(session, planned, options);
        if (outcome === "unsure") return await this.#appendCarefully(sessionId, attempt);
        if ("entries" in outcome) return outcome;
        session = outcome.session;
        await breathe(count);
      }
      throw tooBusy(sessionId);
    } catch (error) {
      // Whether a write that failed left something behind is for the server to say.
      log.forget(sessionId);
      throw error;
    }
  }

  /** Null for a refusal, and when there is nothing to write: both must be checked on the current head. */
  async #planQuickly(session: StoredSession, { drafts, options, now }: Attempt): Promise<PlannedAppend | null> {
    const own = new Set(drafts.map(({ id }) => id));
    // The script refuses ids that the session itself has, so that usually there is nothing to look up.
    const look = ({ ids, settings }: Wanted): Promise<Found> => {
      const others = session.segments.length > 1 ? ids : ids.filter((id) => !own.has(id));
      if (others.length === 0 && settings.length === 0) return Promise.resolve(NOTHING_FOUND);
      return this.#parts.log.look(session, { ids: others, settings });
    };
    // The script checks the lease; here it is taken to be the right one.
    const leaseToken = options.guard?.leaseToken ?? null;
    const input: AppendInput = { head: session.head, drafts, options, leaseToken, now };
    try {
      const planned = await planLater(input, look);
      return planned.plan.added.length === 0 ? null : planned;
    } catch (error) {
      if (error instanceof SessionError && error.code !== "STORE_FAILED") return null;
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
      const leaseToken = options.guard?.leaseToken === undefined ? null : await leases.tokenOf(sessionId);
      const input = { head: session.head, drafts: attempt.drafts, options, leaseToken, now };
      const planned = await planLater(input, (wanted) => log.look(session, wanted));
      if (planned.plan.added.length === 0) return resultOf(planned.plan);
      const outcome = await this.#write(session, planned, options);
      if (outcome !== "unsure" && "entries" in outcome) return outcome;
      await breathe(count);
    }
    throw tooBusy(sessionId);
  }

  /** The result; or how the session stands now, when that is not as planned on; or that a look-up is needed. */
  async #write(session: StoredSession, { plan, found }: PlannedAppend, { guard }: AppendOptions): Promise<Outcome> {
    const { log, index } = this.#parts;
    const { id } = session.head.header;
    const encoded = encodePlan(session, plan, found);
    if (!session.marked) await index.mark(id, session.stamp.gen);
    const stamp = nextStamp(session.stamp);
    const options = this.#optionsOf(session.head, encoded.place.head, guard);
    const reply =
      options === null && encoded.rows.length === 1
        ? await this.#writeOne(session, encoded, stamp)
        : await this.#writeAll(session, encoded, stamp, options ?? {});
    const kind = typeof reply === "number" ? ONE_KINDS[reply] : (reply as readonly RedisReply[])[0];
    if (kind === "lease" || kind === "taken") return "unsure";
    if (kind === "behind") return { session: await log.load(id) };
    if (kind !== "ok") {
      const current = log.accept(id, reply as readonly RedisReply[], session);
      return { session: current?.deletedAt === null ? current : null };
    }
    const { head, leafSeq, factsSeq } = encoded.place;
    const { deletedAt, segments } = session;
    log.remember({ stamp, marked: true, deletedAt, segments, head, leafSeq, factsSeq });
    return resultOf(plan);
  }

  /** What nearly every append is. */
  #writeOne(session: StoredSession, { rows, place }: EncodedPlan, stamp: Stamp): Promise<RedisReply> {
    const { keys, channel } = this.#namesOf(session);
    const row = rows[0] as NewRow;
    return this.#parts.handle.evaluate(APPEND_ONE, keys, [
      session.stamp.text,
      stamp.text,
      writeHead(place, stamp.gen),
      channel,
      placeOf(row.seq),
      row.id,
      writeRow(row),
    ]);
  }

  async #writeAll(
    session: StoredSession,
    { rows, place }: EncodedPlan,
    stamp: Stamp,
    options: Record<string, string>,
  ): Promise<RedisReply> {
    const { handle, names } = this.#parts;
    const { header, version } = session.head;
    const { id } = header;
    const { uid } = stamp;
    const { keys, channel } = this.#namesOf(session);
    const staged = await stageRows(handle, names, id, rows);
    const rest = [names.lease(id), names.forks(id, uid), names.checkpoints(id, uid), ...staged.keys];
    const [known, ...settings] = knownArgs(session);
    const reply = await handle.run(
      APPEND,
      [...keys, ...rest],
      [
        ...[known, stamp.text, writeHead(place, stamp.gen), channel, placeOf(version)],
        ...[...settings, JSON.stringify(options), ...staged.args],
      ],
    );
    if (reply[0] !== "ok") await staged.discard();
    return reply;
  }

  #namesOf({ stamp: { uid }, head }: StoredSession): SessionNames {
    const known = this.#names.get(uid);
    if (known !== undefined) return known;
    const { names } = this.#parts;
    const { id } = head.header;
    const keys = [names.session(id), names.entries(id, uid), names.positions(id, uid)];
    const made = { keys, channel: names.channel(id) };
    this.#names.set(uid, made);
    return made;
  }

  /** What few appends need, for the script; null when there is nothing of it. */
  #optionsOf(before: SessionHead, after: SessionHead, guard: Guard | undefined): Record<string, string> | null {
    const { leases, ttlSeconds } = this.#parts;
    const token = guard?.leaseToken;
    const sameSettings = settingsOf(before) === settingsOf(after);
    const same = sameSettings && sameFacts(before, after);
    if (same && token === undefined && ttlSeconds === undefined) return null;
    return {
      ...(token !== undefined && { token: String(token), clock: leases.clockArg() }),
      ...(ttlSeconds !== undefined && { ttl: String(ttlSeconds) }),
      ...(!same && { ff: writeFacts(after) }),
      ...(!sameSettings && { ss: settingsOf(after), set: writeSettings(after) }),
    };
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
